"""Search for better training settings (`tuning.space` of the profile)."""

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
)

GROUP = "Compare trainings"


def command(
    profile: ProfileOption = None,
    trials: Annotated[
        int | None,
        typer.Option(
            min=1, help="Trainings of the whole search; else tuning.trials of the profile."
        ),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0.0, help="Of this command; 0: no limit. Else tuning.minutes of the profile."
        ),
    ] = None,
    change: SetOption = None,
    sweep: Annotated[
        Path | None,
        typer.Option(help="Write the same search as a W&B sweep to this file, and train nothing."),
    ] = None,
) -> None:
    """Search for better training settings (`tuning.space` of the profile).

    Run again, the search resumes.
    """
    from resources.settings import Settings

    settings = Settings.read(profile, change or ())
    if sweep:
        from experiments.sweep import write_sweep

        searched = settings.profile
        if trials:
            tuning = searched.tuning.model_copy(update={"trials": trials})
            searched = searched.model_copy(update={"tuning": tuning})
        if minutes:
            raise typer.BadParameter(
                "a W&B sweep has no limit in minutes: leave it out", param_hint="--minutes"
            )
        code = write_sweep(sweep, searched, settings.reference, change or [], Console())
        raise typer.Exit(code)
    from experiments.tune import tune

    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else WIDE)
    raise typer.Exit(tune(settings, trials, minutes, console))
