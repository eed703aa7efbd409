"""The commands `ratchet failures` and `ratchet quality`: what stands behind a score. Thin: each loads what it needs when it is called."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from cli.cli_data import ProfileOption


def failures(
    score: Annotated[
        str,
        typer.Argument(
            help="Name of a score, such as chain-0001--heldout, or the path of a scorecard."
        ),
    ],
    kind: Annotated[
        str,
        typer.Option(
            help="WA, RE, TLE, MLE, OLE, CE, extraction or cut; also with what it is of: 'RE KeyError'."
        ),
    ] = "",
    task: Annotated[str, typer.Option(help="A task's id, or its end after a slash.")] = "",
    count: Annotated[int, typer.Option(min=1, help="How many answers are shown.")] = 5,
    profile: ProfileOption = None,
) -> None:
    """Why answers failed: counts by kind; with --kind or --task the prompts, answers and first failing tests that the statement shows."""
    from cli.failures import show_failures

    raise typer.Exit(show_failures(score, kind, task, count, profile, Console()))


def quality(
    scores: Annotated[
        list[str] | None,
        typer.Argument(help="Scores by name or path; without any all of this home."),
    ] = None,
    benchmark: Annotated[str, typer.Option(help="This benchmark alone.")] = "",
    profile: ProfileOption = None,
) -> None:
    """How the programs read that pass, score after score: style, complexity, length against the reference; and what a solved problem took."""
    from cli.failures import show_quality

    raise typer.Exit(show_quality(scores or [], benchmark, profile, Console()))
