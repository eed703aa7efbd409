"""Show whether the home is well: champion, disk, daemon, last night."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict
from datetime import UTC, datetime

import typer

from cli.app.commands import Command
from cli.app.options import JsonOption, ProfileOption
from cli.display.findings import finding_table
from cli.display.screen import print_json, screen
from resources.settings import Settings


def command(as_json: JsonOption = False, profile: ProfileOption = None) -> None:
    """Show whether the home is well: champion, disk, daemon, last night.

    Exits 1 if something is not, for cron and for probes. Nothing is changed.
    """
    import dagster as dg

    from pipelines import instance
    from pipelines.health import check

    settings = Settings.read(profile)
    settings.home.make()
    instance.prepare(settings.home, settings.profile.orchestration)
    away = instance.unreachable(settings.profile.orchestration)
    with nullcontext(away) if away else dg.DagsterInstance.get() as dagster:
        found = check(settings, dagster, datetime.now(UTC))
    if as_json:
        print_json([asdict(finding) for finding in found])
    else:
        screen().print(finding_table(found))
    raise typer.Exit(int(any(finding.blocks for finding in found)))


COMMAND = Command("Run", command)
