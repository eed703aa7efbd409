"""The command `ratchet prefer`. Thin: it loads what it needs when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pipelines.cli_data import ProfileOption


def prefer(
    contestants: Annotated[
        list[str],
        typer.Argument(
            help="Two or more: checkpoints with scorecards here, scorecards, or files of completions."
        ),
    ],
    benchmark: Annotated[
        str,
        typer.Option(
            help="Whose answers, for checkpoints by name; without it the first that all were scored on."
        ),
    ] = "",
    tasks: Annotated[
        Path | None,
        typer.Option(
            help="JSON lines (task_id, prompt) or a parquet in our schema: what the tasks ask."
        ),
    ] = None,
    pairs: Annotated[
        int, typer.Option(min=0, help="At most so many pairs, drawn by the seed; 0: all.")
    ] = 0,
    seed: Annotated[
        int, typer.Option(min=0, help="Of the draw, of each judge's order and of the sides.")
    ] = 0,
    question: Annotated[str, typer.Option(help="What the judges are asked.")] = "",
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on; with another than 127.0.0.1 others on the network can judge (plain HTTP)."
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="The next free one is taken.")] = 8088,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", help="Folder for the choices; without it one under the home, found again."
        ),
    ] = None,
    result: Annotated[
        bool, typer.Option("--result", help="Say what has been chosen so far, and open no page.")
    ] = False,
    profile: ProfileOption = None,
) -> None:
    """A page on which people choose between two answers, blind; who is preferred, with intervals, and data for a reward (docs/how-to/preference.md)."""
    from pipelines.prefer import Wanted, prefer

    wanted = Wanted(tuple(contestants), benchmark, tasks, pairs, seed, question, to)
    raise typer.Exit(prefer(wanted, host, port, result, profile, Console()))
