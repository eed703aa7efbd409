"""Search for better training settings (`tuning.space` of the profile)."""

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
    profile: ProfileOption = None,
    trials: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Trials of the whole search. Default: tuning.trials of the profile.",
        ),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="Time limit of this command; 0: none. Default: tuning.minutes.",
        ),
    ] = None,
    change: SetOption = None,
    sweep: Annotated[
        Path | None,
        typer.Option(help="Write the search as a W&B sweep to this file, and train nothing."),
    ] = None,
) -> None:
    """Search for better training settings (`tuning.space` of the profile).

    If the command is repeated, the search resumes.
    """
    from resources.settings import Settings

    settings = Settings.read(profile, change or ())
    if sweep:
        from experiments.sweep import write_sweep

        tuned = settings.profile
        if trials:
            tuning = tuned.tuning.model_copy(update={"trials": trials})
            tuned = tuned.model_copy(update={"tuning": tuning})
        if minutes:
            raise typer.BadParameter(
                "a W&B sweep has no time limit: remove this option", param_hint="--minutes"
            )
        code = write_sweep(sweep, tuned, settings.reference, change or [], screen())
        raise typer.Exit(code)
    from experiments.tune import tune

    console = screen()
    raise typer.Exit(tune(settings, trials, minutes, console))


COMMAND = Command("Compare trainings", command)
