"""Show what this machine has for a training of a profile, what is missing, and how to get it."""

from __future__ import annotations

import typer
from rich.console import Console

from cli.app.commands import Command
from cli.app.options import ProfileOption, SetOption
from cli.display.findings import finding_table
from cli.display.screen import screen
from pipelines.watch.text import print_text
from resources.doctor import findings
from resources.settings import Settings


def show_doctor(settings: Settings, console: Console) -> int:
    """Print a line for each part. Return 1 if the profile cannot train here, else 0."""
    found = list(findings(settings.home, settings.profile))
    console.print(finding_table(found))
    blocked = [finding.part for finding in found if finding.blocks]
    name = settings.profile_name
    print_text(
        console,
        f"The profile {name} cannot train here: {', '.join(blocked)}."
        if blocked
        else f"The profile {name} can train here.",
    )
    return 1 if blocked else 0


def command(profile: ProfileOption = None, change: SetOption = None) -> None:
    """Show what this machine has for a training, what is missing, and how to get it.

    Exits 1 if the profile cannot train here. Nothing is changed.
    """
    raise typer.Exit(show_doctor(Settings.read(profile, change or ()), screen()))


COMMAND = Command("Run", command)
