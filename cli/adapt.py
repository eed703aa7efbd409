"""Measure what a few examples are worth: in the prompt, or as gradient steps."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cli.options import (
    WIDE,
    ProfileOption,
    SetOption,
    change_settings,
)

GROUP = "Compare trainings"


def command(
    start: Annotated[
        str,
        typer.Argument(
            help=(
                "A checkpoint by name (`ratchet status` lists them), a Hugging Face folder or a "
                "hub id."
            )
        ),
    ],
    problems: Annotated[
        Path | None,
        typer.Option(
            help="A parquet in our schema: your own family, instead of adaptation.families."
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
    """Measure what a few examples are worth: in the prompt, or as gradient steps.

    Results have intervals (docs/adaptation.md).
    """
    change_settings(change or [])
    from experiments.adapt import adapt

    raise typer.Exit(
        adapt(start, problems, keep, profile, Console(width=None if sys.stdout.isatty() else WIDE))
    )
