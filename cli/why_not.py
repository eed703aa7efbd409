"""Explain why a version was refused, and what a promotion would have required."""

from __future__ import annotations

import typer
from rich.console import Console

from cli.app.commands import Command
from cli.app.options import (
    ProfileOption,
    VersionArgument,
)
from cli.display.outcome import outcome
from cli.display.screen import screen
from cli.explain import show_refusal
from resources.registry.ledger import named
from resources.registry.versions import find
from resources.settings import Settings


def why_not(version: str, settings: Settings, console: Console) -> int:
    """Explain a refusal. Return 1 if the version was not refused. Raises UnknownVersion."""
    history = settings.history
    entries = find(history, version)
    if not (refusals := [entry for entry in entries if entry.kind == "refuse"]):
        console.print(
            f"{named(entries[-1])} was not refused: it was {outcome(history, entries[-1])}. "
            f"`ratchet explain {version}` explains why."
        )
        return 1
    show_refusal(refusals[-1], history, console)
    return 0


def command(version: VersionArgument = "challenger", profile: ProfileOption = None) -> None:
    """Explain why a version was refused, and what a promotion would have required.

    Exits 1 if it was not refused.
    """
    raise typer.Exit(why_not(version, Settings.read(profile), screen()))


COMMAND = Command("Promote and explain", command)
