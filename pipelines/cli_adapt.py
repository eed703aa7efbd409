"""The command `ratchet adapt`. Thin: it loads what it needs when it is called."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pipelines.cli_data import ProfileOption
from pipelines.cli_tune import WIDE


def adapt(
    start: Annotated[
        str,
        typer.Argument(
            help="A checkpoint by name (`ratchet status` lists them), a Hugging Face folder or a hub id."
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
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="A change to the profile, section.key=value; may be given again."
        ),
    ] = None,
    profile: ProfileOption = None,
) -> None:
    """What a few examples of a new family are worth: in the prompt against as gradient steps, with intervals (docs/how-to/adaptation.md)."""
    if change:
        os.environ["RATCHET_SET"] = "\n".join(change)
    from pipelines.adapt import adapt

    raise typer.Exit(
        adapt(start, problems, keep, profile, Console(width=None if sys.stdout.isatty() else WIDE))
    )
