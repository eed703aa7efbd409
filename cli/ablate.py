"""Measure the contribution of each setting: change one at a time, same budget and seeds."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from cli.app.commands import Command
from cli.app.options import (
    ProfileOption,
    SetOption,
)


def command(
    changes: Annotated[
        list[str],
        typer.Argument(
            help=(
                "Changes, one a variant: reward.style=0, curriculum=off, algorithm=rloo, or "
                "section.key=value."
            )
        ),
    ],
    seeds: Annotated[int, typer.Option(min=1, help="Training seeds, the same for all runs.")] = 3,
    steps: Annotated[int, typer.Option(min=0, help="Steps of each run; 0: the profile's.")] = 0,
    change: SetOption = None,
    profile: ProfileOption = None,
) -> None:
    """Measure the contribution of each setting: change one at a time, same budget and seeds.

    Results have intervals (docs/how-to/ablation.md).
    """
    from experiments.ablate import ablate
    from resources.settings import Settings

    budget = [f"training.steps={steps}"] if steps else []
    settings = Settings.read(profile, change or ()).with_changes(budget)
    raise typer.Exit(ablate(changes, seeds, settings, Console(force_terminal=False)))


COMMAND = Command("Compare trainings", command)
