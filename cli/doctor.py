"""Show what this machine has for a training of a profile, what is missing, and how to get it."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cli.app.commands import Command
from cli.app.options import ProfileOption, SetOption
from cli.display.screen import screen
from pipelines.watch.text import print_text
from resources.doctor import findings
from resources.settings import Settings


def show_doctor(settings: Settings, console: Console) -> int:
    """Print a line for each part. Return 1 if the profile cannot train here, else 0."""
    table, blocked = Table.grid(padding=(0, 2)), list[str]()
    table.add_column(no_wrap=True)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings(settings.home, settings.profile):
        state = "[red]no[/]" if finding.blocks else "[yellow]![/]" if finding.mend else "ok"
        mend = f"\n→ {escape(finding.mend)}" if finding.mend else ""
        table.add_row(state, finding.part, escape(finding.found) + mend)
        blocked += [finding.part] if finding.blocks else []
    console.print(table)
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
