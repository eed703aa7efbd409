"""List all versions and their outcomes, and sync pending changes to MLflow."""

from __future__ import annotations

import sys
from collections import Counter
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from artifacts.integrity import RESTORE, CorruptArtifact
from artifacts.pull import pull_champion
from cli.app.commands import Command
from cli.app.options import JsonOption, ProfileOption
from cli.display.outcome import outcome
from cli.display.screen import print_json, screen
from cli.lookup.damage import Damage
from cli.provenance import passport_of
from evaluation.promotion.comparison import count
from pipelines.watch.text import print_text
from resources.home import NotReady
from resources.registry.ledger import Entry, Ledger
from resources.registry.mlflow import Registry, aliases_of
from resources.registry.regressions import RegressionSet
from resources.registry.releases import Releases
from resources.run_record import records
from resources.settings import Settings
from resources.verification import verify_records


def show_registry(settings: Settings, console: Console, *, as_json: bool = False) -> int:
    """Sync MLflow, and print every version with its outcome, newest first; as JSON without a sync.

    Return 1 if MLflow cannot be reached, else 0.
    """
    ledger, registry = settings.ledger, settings.registry
    history = settings.history
    if as_json:
        print_json(_versions(history))
        return 0
    if not history:
        console.print("No versions yet: `ratchet demo` makes the first.")
        return 0
    synced = registry.is_synced(history) or sync_mlflow(registry, ledger)
    console.width = max(console.width, 120)
    console.print(_table(_versions(history)))
    print_text(
        console, f"ledger {ledger.place}, MLflow {registry.uri}, model `ratchet`", style="dim"
    )
    return 0 if synced else 1


def sync_mlflow(registry: Registry, ledger: Ledger) -> bool:
    """Sync MLflow with the ledger. Print a warning and return False if that fails."""
    if behind := registry.try_sync(ledger):
        print(f"warning: {behind}", file=sys.stderr)
    return not behind


def _versions(history: list[Entry]) -> list[dict[str, Any]]:
    aliases_by_version: dict[int, list[str]] = {}
    for alias, entry in aliases_of(history).items():
        aliases_by_version.setdefault(entry.version, []).append(alias)
    return [
        {
            "version": entry.version,
            "aliases": aliases_by_version.pop(entry.version, []),
            "checkpoint": entry.checkpoint,
            "outcome": outcome(history, entry),
            "date": entry.created_at[:16].replace("T", " "),
            "hash": entry.checkpoint_hash,
            "path": entry.path,
        }
        for entry in history[::-1]
        if entry.kind != "rollback"
    ]


def _table(versions: list[dict[str, Any]]) -> Table:
    shown = ("version", "aliases", "checkpoint", "outcome", "date")
    table = Table(*shown, box=None, header_style="bold")
    for version in versions:
        row = version | {"aliases": f"[green]{', '.join(version['aliases'])}[/]"}
        table.add_row(*(str(row[name]) for name in shown))
    return table


class Action(StrEnum):
    show = "show"
    verify = "verify"
    head = "head"


def verify(settings: Settings, console: Console, kept: str = "") -> int:
    """Check every entry of the ledger, the champion's files and all files of the home that have a
    hash. kept: the ledger's head at an earlier time. Raises LedgerChanged and CorruptArtifact.
    """
    ledger = settings.ledger
    ledger.check_file()
    if kept:
        try:
            ledger.check_head(kept)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--head") from error
    number, head = ledger.head()
    known = records(settings.home.runs)
    ledger.compare({record.id: record.decision for record in known if record.decision})
    entries = count(number, "entry")
    console.print(f"{entries}, each as recorded; hash of the last: {head or 'none'}")
    lost = RegressionSet(settings.home.regressions).read()
    console.print(
        f"{count(len(known), 'run')} and {count(len(lost), 'lost task')}, each as recorded"
    )
    if releases := Releases(ledger.place).all():
        events = count(sum(len(release.events) for release in releases), "event")
        console.print(f"{count(len(releases), 'release')}, {events}, each as recorded")
    if champion := ledger.champion():
        pull_champion(settings.store, champion.path, champion.checkpoint_hash)
        console.print(f"champion {champion.checkpoint}: its files are those of the ledger")
    artifacts = count(settings.store.verify_all(), "artifact")
    console.print(f"{artifacts}: each file is as published")
    if champion and (missing := passport_of(str(champion.version), settings, Damage()).missing):
        raise CorruptArtifact(
            f"{', '.join(missing)}: missing in {settings.home.path}, and the champion was made "
            f"from it: {RESTORE}"
        )
    verified = verify_records(settings.home.path)
    console.print(
        f"{count(len(verified.files), 'other file')} with a hash, and "
        f"{count(verified.lines, 'line')} with one: as written"
    )
    if others := verified.without_hash:
        counts = Counter(path.parts[0] for path in others)
        names = ", ".join(f"{name} ({n})" if n > 1 else name for name, n in counts.items())
        console.print(f"without a hash, not checked: {names}")
    return 0


def command(
    action: Annotated[
        Action,
        typer.Argument(
            help="verify: check the ledger and every file that has a hash. "
            "head: print the ledger's head, to be kept elsewhere."
        ),
    ] = Action.show,
    head: Annotated[
        str,
        typer.Option(help="With verify: a head printed earlier; the ledger must continue it."),
    ] = "",
    as_json: JsonOption = False,
    profile: ProfileOption = None,
) -> None:
    """List all versions and their outcomes, and sync pending changes to MLflow; or verify them.

    Exits 1 if MLflow cannot be reached, 2 if an entry or a file has changed.
    """
    settings = Settings.read(profile)
    if action is Action.verify:
        raise typer.Exit(verify(settings, Console(soft_wrap=True), head))
    if action is Action.head:
        number, content = settings.ledger.head()
        if not number:
            raise NotReady("the ledger has no entry yet: `ratchet demo` makes the first")
        print(f"{number}:{content}")
        return
    raise typer.Exit(show_registry(settings, screen(), as_json=as_json))


COMMAND = Command("Promote and explain", command)
