"""Remove what nothing names any more: old weights, saves of ended trainings, old histories."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table

from cli.app.commands import Command
from cli.app.options import JsonOption, ProfileOption
from cli.display.screen import print_json, screen
from pipelines.watch.text import print_text
from resources.settings import Settings


def command(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be removed.")
    ] = False,
    as_json: JsonOption = False,
    profile: ProfileOption = None,
) -> None:
    """Remove weights, saves and records that nothing names any more.

    It also happens after each decision and once a day. `storage` in the profile says what stays.
    Exits 3 while another process trains in this home.
    """
    from pipelines import instance
    from pipelines.history import forget_runs
    from resources.retention import collect, collecting

    settings = Settings.read(profile)
    storage = settings.profile.storage
    with collecting(settings.home), instance.opened(settings) as dagster:
        removals = collect(settings.home, settings.store, settings.ledger, storage, dry_run=dry_run)
        runs = forget_runs(dagster, storage.keep_days, dry_run=dry_run)
    if as_json:
        print_json({"removed": [asdict(each) for each in removals], "dagster_runs": runs})
        return
    console = screen()
    table = Table.grid(padding=(0, 2))
    for each in removals:
        table.add_row(f"{each.bytes / 2**20:,.1f} MiB", each.path, each.reason)
    if removals:
        console.print(table)
    total = sum(each.bytes for each in removals) / 2**20
    would = "Would remove" if dry_run else "Removed"
    print_text(
        console,
        f"{would} {total:,.1f} MiB, and {len(runs)} runs of Dagster that ended more than "
        f"{storage.keep_days} days ago",
    )


COMMAND = Command("Run", command)
