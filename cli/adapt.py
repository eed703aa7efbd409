"""Measure the value of a few examples: in the prompt, or as gradient steps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.app.commands import Command
from cli.app.options import (
    ProfileOption,
    SetOption,
)
from cli.display.screen import screen


def command(
    start: Annotated[
        str,
        typer.Argument(
            help=(
                "A checkpoint, a version (`ratchet registry` lists them), a Hugging Face folder, "
                "a hub id, or a GGUF file (gguf:PATH, package:NAME)."
            )
        ),
    ],
    problems: Annotated[
        Path | None,
        typer.Option(
            help="A parquet of problems, your own family, instead of adaptation.families."
        ),
    ] = None,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep", help="Keep the adapted checkpoints, in `adapted/` beside the result."
        ),
    ] = False,
    change: SetOption = None,
    profile: ProfileOption = None,
) -> None:
    """Measure the value of a few examples: in the prompt, or as gradient steps.

    Results have intervals (docs/how-to/adaptation.md).
    """
    from experiments.adapt import adapt
    from resources.settings import Settings

    console = screen()
    raise typer.Exit(adapt(start, problems, keep, Settings.read(profile, change or ()), console))


COMMAND = Command("Compare trainings", command)
