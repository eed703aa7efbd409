"""Run the pipeline once, from raw problems to a promotion decision, with a live view."""

from __future__ import annotations

import typer
from rich.console import Console

from cli.app.commands import Command
from cli.app.options import (
    ProfileOption,
    UnverifiedOption,
)
from resources.settings import Settings


def command(profile: ProfileOption = None, unverified: UnverifiedOption = False) -> None:
    """Run the pipeline once, from raw problems to a promotion decision, with a live view.

    An interrupted pipeline run resumes; otherwise training starts from the current champion.
    """
    from pipelines.launch import demo

    raise typer.Exit(demo(Settings.read(profile, unverified=unverified), Console()))


COMMAND = Command("Run", command)
