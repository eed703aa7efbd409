"""The command `ratchet ablate`. Thin: it loads what it needs when it is called."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from pipelines.cli_data import ProfileOption


def ablate(
    changes: Annotated[
        list[str],
        typer.Argument(
            help="One change each: reward.style=0, curriculum=off, algorithm=rloo, or section.key=value."
        ),
    ],
    seeds: Annotated[int, typer.Option(min=1, help="Of training, the same for all runs.")] = 3,
    steps: Annotated[int, typer.Option(min=0, help="Of every run; 0: the profile's.")] = 0,
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="A change to the baseline too, section.key=value; may be given again."
        ),
    ] = None,
    profile: ProfileOption = None,
) -> None:
    """Trains with one thing changed at a time, with equal budget and seeds, and says what each contributes, with intervals (docs/how-to/ablation.md)."""
    from pipelines.ablate import ablate, with_steps

    with_steps(change or [], steps)
    raise typer.Exit(ablate(changes, seeds, profile, Console(force_terminal=False)))
