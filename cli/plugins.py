"""Test your training plug-ins: load each and run one dry step, without Ray."""

from __future__ import annotations

import typer
from rich.console import Console

from cli.app.commands import Command
from cli.app.options import (
    ProfileOption,
    SetOption,
)
from cli.display.screen import screen
from pipelines.watch.text import print_text
from resources.plugin_check import check_plugins
from resources.settings import Settings


def try_plugins(settings: Settings, console: Console) -> int:
    """Print a line for each plug-in, and the hash of its file. Raises PluginError for a plug-in
    that cannot be used.
    """
    plugins = settings.profile.training.plugins
    if not plugins.references:
        console.print(
            "This profile names no plug-in: docs/how-to/write-a-plugin.md shows one of each kind.",
            soft_wrap=True,
        )
        return 0
    for line in check_plugins(settings.profile.training, unverified=True):
        print_text(console, f"ok: {line}")
    for kind, digest in plugins.hashes().items():
        print_text(console, f"{kind} {digest[:12]}", style="dim")
    return 0


def command(
    profile: ProfileOption = None,
    change: SetOption = None,
) -> None:
    """Test your training plug-ins: load each and run one dry step, without Ray."""
    raise typer.Exit(try_plugins(Settings.read(profile, change or ()), screen()))


COMMAND = Command("Train", command)
