"""Show the champion, running pipeline runs, and scores that are out of date."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from artifacts.manifest import Manifest
from evaluation.statistics.alpha_spending import accumulated_risk
from resources import lease
from resources.home import Home
from resources.registry.ledger import Entry, champions
from resources.run_record import Record, records, tasks_used
from resources.settings import Settings
from verl_jobs.job import TrainingJob

GROUP = "Run"
WARNING_DRAWS = 1_000  # a year of nights with a gate, a rescore and some more


def show_status(settings: Settings, console: Console) -> None:
    home = settings.home
    ledger = settings.ledger
    history = ledger.history()
    champion = next(iter(champions(history)[::-1]), None)
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    table.add_row("home", str(home.path))
    table.add_row(
        "champion", _champion(champion) if champion else "none yet: `ratchet demo` makes the first"
    )
    for previous in champions(history)[-2:-1]:
        table.add_row(
            "before it",
            (
                f"version {previous.version}, {previous.checkpoint} (`ratchet rollback` goes back "
                "to it)"
            ),
        )
    holder = lease.holder(home.lease)
    table.add_row("runs", f"training {holder}" if holder else "nothing")
    known = records(home.runs)
    table.add_row("held-out", _stock(settings, known))
    policy = settings.profile.policy
    decided = sum(bool(entry.decision.get("comparison")) for entry in history)
    table.add_row("gates", accumulated_risk(policy.spending, policy.alpha, decided))
    for record in known[-5:]:
        table.add_row(
            record.id,
            _line(record, running=holder is not None and holder.chain == record.id)
            + _early(home, record),
        )
    if behind := settings.registry.behind(history):
        table.add_row(
            "MLflow",
            (
                f"[yellow]was not told of the last {behind} of {len(history)} entries: `ratchet "
                "registry` tells it[/]"
            ),
        )
    for line in stale(settings):
        table.add_row("stale", f"[yellow]{line}[/]")
    console.print(table)


def _stock(settings: Settings, known: list[Record]) -> str:
    """Return how many held-out draws are left, with a warning in the last year of nights."""
    from problems.sources.heldout import STOCK

    family, size = settings.profile.family, settings.profile.evaluation.heldout
    left = max(0, STOCK - tasks_used(known, family.seed)) // size
    line = f"{left:,} draws of {size} tasks left"
    if left >= WARNING_DRAWS:
        return line
    return f"[yellow]{line}: set family.seed to a new number before they end[/]"


def stale(settings: Settings) -> list[str]:
    """What no longer follows from what lies before it, in words."""
    from problems.catalogue import read_sources
    from problems.verification.chosen_limits import input_of, read_choice

    home, store, lines = settings.home, settings.store, list[str]()
    stages = (
        "raw_problems",
        "verified_problems",
        "augmented_problems",
        "synthetic_problems",
        "clean_problems",
    )
    current = {name: made for name in stages if (made := store.current("datasets", name))}
    if raw := current.get("raw_problems"):
        places, read = read_sources(home.path), raw.manifest.inputs
        now = {name: place.path for name, place in places.items()}
        if sorted(now) != sorted(raw.manifest.inputs):
            lines.append(
                f"problems: sources are {', '.join(now) or 'none'} now, "
                f"{', '.join(raw.manifest.inputs) or 'none'} were read"
            )
        lines += [
            f"problems: source {name} lies at {path}, where nothing is any more"
            for name, path in now.items()
            if path and not path.exists()
        ]
        changed = [
            name
            for name, path in now.items()
            if path and path.is_file() and path.stat().st_mtime > _made(raw.manifest)
        ]
        lines += [
            f"problems: the file of source {name} is newer than what was read"
            for name in changed
            if name in raw.manifest.inputs
        ]
        moved = [
            name
            for name, place in places.items()
            if place.path is None and read.get(name, place.content) != place.content
        ]
        lines += [
            f"problems: source {name} is at another commit of the hub than was read"
            for name in moved
        ]
    limits = input_of(read_choice(home.path)).get("limits")
    if (verified := current.get("verified_problems")) and verified.manifest.inputs.get(
        "limits"
    ) != limits:
        lines.append("verified_problems: limits were chosen, or taken back, since")
    for name, made in current.items():
        for source, content in made.manifest.inputs.items():
            if source in current and current[source].content_hash != content:
                lines.append(f"{name}: {source} was made anew since")
    return lines


def _champion(entry: Entry) -> str:
    missing = "" if Path(entry.path).is_dir() else "  [red](its folder is missing)[/]"
    how = {"install": "installed as the first", "promote": "promoted", "rollback": "put back"}[
        entry.kind
    ]
    return f"version {entry.version}, {entry.checkpoint}, {how} {entry.created_at}{missing}"


def _early(home: Home, record: Record) -> str:
    """Why the newest training of a chain ended before its last step; nothing where it did not."""
    stopped_files = sorted(
        (home.runs / record.id / "training").glob("*/stopped.json"),
        key=lambda path: path.stat().st_mtime,
    )
    if record.kind != "chain" or not stopped_files:
        return ""
    return escape(
        "; its training was ended early: "
        f"{TrainingJob.read(stopped_files[-1].with_name('job.json')).stopped}"
    )


def _line(record: Record, running: bool) -> str:
    again = (
        "the command that began it"
        if record.kind in ("study", "score")
        else "the next `ratchet demo`"
    )
    state = (
        "runs"
        if running
        else {"open": f"interrupted, goes on with {again}", "done": "done", "failed": "given up"}[
            record.state
        ]
    )
    decision = {"promote": ": promoted", "refuse": ": not promoted", "install": ": installed"}.get(
        record.decision, ""
    )
    error = f" ({record.error})" if record.error and record.state != "done" else ""
    return (
        f"{state}{decision}{error}, {record.took_minutes:.1f} min, profile {record.profile}, "
        f"started by {record.why}"
    )


def _made(manifest: Manifest) -> float:
    from datetime import datetime

    return datetime.fromisoformat(manifest.created_at).timestamp()


def command(
    provenance: Annotated[
        bool, typer.Option("--provenance", help="Walk from the champion back to the raw problems.")
    ] = False,
) -> None:
    """Show the champion, running pipeline runs, and scores that are out of date."""
    from cli.provenance import show_champion

    (show_champion if provenance else show_status)(Settings.read(), Console())
