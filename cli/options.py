"""Options and arguments that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

WIDE = 180  # columns of a table where there is no terminal to ask

ProfileOption = Annotated[
    str | None,
    typer.Option(
        "--profile", "-p", help="Name or path of a profile; else RATCHET_PROFILE, else embedded."
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="A change to the profile, section.key=value; may be given again."),
]
UnverifiedOption = Annotated[
    bool,
    typer.Option(
        "--unverified",
        help="Train although the exploit battery did not pass the reward; stamped into all.",
    ),
]
CheckpointArgument = Annotated[
    str,
    typer.Argument(
        help="Name of a checkpoint (`ratchet status` lists them) or a Hugging Face folder."
    ),
]
VersionArgument = Annotated[
    str,
    typer.Argument(
        help="A version's number, champion, previous, challenger, or a checkpoint's name."
    ),
]
RunArgument = Annotated[
    str | None, typer.Argument(help="A run, e.g. chain-0002; without it the newest.")
]
AddressOption = Annotated[
    str,
    typer.Option(
        "--address",
        help="Ask this Ray cluster (its dashboard, http://host:8265) in place of the home.",
    ),
]
