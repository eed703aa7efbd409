"""The command `ratchet tune`. Thin: it loads what it needs when it is called."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cli.cli_data import ProfileOption

WIDE = 180  # columns, where no terminal says how many


def tune(
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
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="A change to the profile, section.key=value; may be given again."
        ),
    ] = None,
    sweep: Annotated[
        Path | None,
        typer.Option(help="Write the same search as a W&B sweep to this file, and train nothing."),
    ] = None,
) -> None:
    """Searches a training's settings (tuning.space of the profile), and says with which to train. Given again, it goes on where it was."""
    if change:
        os.environ["RATCHET_SET"] = "\n".join(change)
    if sweep:
        from experiments.sweep import write_sweep
        from pipelines.launch import name_of
        from resources.config.profile import load_profile

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
