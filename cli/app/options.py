"""Options and arguments that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

ProfileOption = Annotated[
    str | None,
    typer.Option(
        "--profile",
        "-p",
        help="Name or path of a profile; default: RATCHET_PROFILE, the home's, or embedded.",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change a setting of the profile: section.key=value; repeatable."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
UnverifiedOption = Annotated[
    bool,
    typer.Option(
        "--unverified",
        help="Train with a reward that failed the exploit battery; recorded in all results.",
    ),
]
CheckpointArgument = Annotated[
    str,
    typer.Argument(
        help="A checkpoint, a version (`ratchet registry` lists them), or a Hugging Face folder."
    ),
]
VersionArgument = Annotated[
    str,
    typer.Argument(
        help="A version: its number, champion, previous, challenger, or a checkpoint's name."
    ),
]
RunArgument = Annotated[
    str | None, typer.Argument(help="A run, e.g. chain-0002. Default: the newest.")
]
