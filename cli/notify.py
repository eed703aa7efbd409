"""Show the receivers of messages, and send test messages."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer
from rich.table import Table

from cli.app.commands import Command
from cli.app.options import JsonOption, ProfileOption
from cli.display.screen import print_json, screen
from resources.home import NotReady
from resources.settings import Settings

NOBODY = (
    "`notify.receivers` of the profile {} names nobody: add `{{url: RATCHET_NOTIFY}}` there, or "
    "give --profile, and set the environment variable RATCHET_NOTIFY to an apprise URL"
)


def command(
    test: Annotated[
        bool, typer.Option("--test", help="Send one message of each event to each receiver.")
    ] = False,
    as_json: JsonOption = False,
    profile: ProfileOption = None,
) -> None:
    """Show the receivers of messages (`notify` of the profile), and send test messages.

    Exits 1 if a test message could not be sent.
    """
    settings = Settings.read(profile)
    receivers = settings.profile.notify.receivers
    if not receivers:
        raise NotReady(NOBODY.format(settings.reference))
    rows = [
        {"url": each.url, "set": bool(os.environ.get(each.url)), "events": list(each.events)}
        for each in receivers
    ]
    if as_json:
        print_json(rows)
    else:
        table = Table("variable", "", "events", box=None, pad_edge=False)
        for each in receivers:
            state = "set" if os.environ.get(each.url) else "[red]not set[/]"
            table.add_row(each.url, state, ", ".join(each.events))
        screen().print(table)
    if test:
        from pipelines.notices import send_tests

        problems = send_tests(settings)
        for problem in dict.fromkeys(problems):
            print(f"error: {problem}", file=sys.stderr)
        raise typer.Exit(int(bool(problems)))


COMMAND = Command("Run", command)
