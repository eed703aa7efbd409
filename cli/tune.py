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
    change_settings,
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
    change_settings(change or [])
    if sweep:
        from experiments.sweep import write_sweep
        from pipelines.launch import name_of
        from resources.config.load import load_profile

        asked = load_profile(profile)
        if trials:
            asked = asked.model_copy(
                update={"tuning": asked.tuning.model_copy(update={"trials": trials})}
            )
        if minutes:
            raise typer.BadParameter(
                "a W&B sweep has no limit in minutes: leave it out", param_hint="--minutes"
            )
        raise typer.Exit(write_sweep(sweep, asked, name_of(profile), change or [], Console()))
    from experiments.tune import tune

    raise typer.Exit(
        tune(
            profile,
            trials,
            minutes,
            Console(file=sys.stdout, width=None if sys.stdout.isatty() else WIDE),
        )
    )
