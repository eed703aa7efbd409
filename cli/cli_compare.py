"""The command `ratchet compare`. Thin: it loads what it needs when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cli.cli_data import ProfileOption


def compare(
    models: Annotated[
        list[str],
        typer.Argument(
            help="Scored checkpoints, or scorecards' files or folders; runs of a recipe joined by commas."
        ),
    ],
    benchmark: Annotated[
        list[str] | None,
        typer.Option(
            help="Only this benchmark; may be given again. Without it all but validation."
        ),
    ] = None,
    k: Annotated[int, typer.Option(min=1, help="Compare pass@k.")] = 1,
    alpha: Annotated[
        float,
        typer.Option(
            min=0.0001, max=0.5, help="Chance of one false verdict among all that are given."
        ),
    ] = 0.05,
    suspects: Annotated[
        Path | None,
        typer.Option(
            exists=True, help="A suspects.json; without it that of this home's clean_problems."
        ),
    ] = None,
    to: Annotated[Path | None, typer.Option("--to", help="Write the rows as JSON, too.")] = None,
    profile: ProfileOption = None,
) -> None:
    """Models side by side, task by task: the first against each other one, with intervals, Holm's correction and what the tasks can show.

    One model alone: what its benchmarks can show, before there is another.
    """
    from cli.compare import compare

    raise typer.Exit(compare(models, benchmark or [], k, alpha, suspects, to, profile, Console()))
