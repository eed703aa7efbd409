"""Show the champion, running pipeline runs, and datasets that are out of date."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from artifacts.manifest import Manifest
from artifacts.pull import holds
from artifacts.store import Store
from assets.stages import PREPARING
from cli.app.commands import Command
from cli.app.options import JsonOption
from cli.display.screen import print_json, screen
from cli.lookup.damage import Damage
from evaluation.statistics.alpha_spending import accumulated_risk
from resources import lease
from resources.finding import kept_findings
from resources.home import Home
from resources.registry.ledger import Entry, champions, previous_of
from resources.registry.releases import Release, Releases, deployed
from resources.run_record import RunRecord, readable, unreadable
from resources.settings import Settings
from verl_jobs.job import stop_reason

NO_CHAMPION = "none yet: `ratchet demo` makes the first"


def show_status(settings: Settings, console: Console, *, as_json: bool = False) -> int:
    """Print the state of the home as a table, or as JSON: each row's name with its lines.

    Return 2 if a file is damaged, else 0.
    """
    home, damage = settings.home, Damage()
    known: list[RunRecord] = []
    with damage.collected():
        known = readable(home.runs)
        damage.add(map(str, unreadable(home.runs).values()))
    holder: lease.Holder | None = None
    training = "unknown"
    with damage.collected():
        holder = lease.holder(home.lease)
        training = str(holder or "none")
    rows = [("home", str(home.path))]
    history: list[Entry] = []
    with damage.collected():
        history = settings.history
        rows += _champions(history, settings.store)
        rows += _release(history, Releases(settings.ledger.place).all() if history else [])
    rows.append(("training", training))
    rows += _automation(home)
    policy = settings.profile.policy
    decided = sum(bool(entry.decision.get("comparison")) for entry in history)
    rows.append(("gates", accumulated_risk(policy.spending, policy.alpha, decided)))
    for record in known[-5:]:
        early = ""
        with damage.collected():
            early = _early_stop(home, record)
        running = holder is not None and holder.run_id == record.id
        rows.append((record.id, _run_line(record, running) + early))
    if behind := settings.registry.behind(history):
        rows.append(
            (
                "MLflow",
                f"[yellow]the last {behind} of {len(history)} entries are not synced: `ratchet "
                "registry` syncs them[/]",
            )
        )
    rows += [("stale", f"[yellow]{escape(line)}[/]") for line in stale(settings, damage)]
    if as_json:
        lines: dict[str, list[str]] = {}
        for name, text in rows:
            lines.setdefault(name, []).append(Text.from_markup(text).plain)
        print_json(lines)
    else:
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim", no_wrap=True)
        table.add_column()
        for row in rows:
            table.add_row(*row)
        console.print(table)
    return damage.exit_code()


def _release(history: list[Entry], releases: list[Release]) -> list[tuple[str, str]]:
    """Return the newest release and the version that it left, or leaves so far, in front of
    users.
    """
    if not releases:
        return []
    last = releases[-1]
    state = f"{last.id} of version {last.challenger} is {last.state.replace('_', ' ')}"
    version, stack = deployed(releases), [entry.version for entry in champions(history)]
    if (answers := version) not in stack:
        answers, state = stack[-1], f"{state}, and version {version} was rolled back since"
    return [("deployed", f"version {answers}; {state} (`ratchet release status`)")]


def _champions(history: list[Entry], store: Store) -> list[tuple[str, str]]:
    """Return the champion and the one before it, with the command that restores it."""
    stack = champions(history)
    rows = [("champion", _champion(stack[-1], store) if stack else NO_CHAMPION)]
    if previous := previous_of(history):
        taken_back = previous.version not in {entry.version for entry in stack}
        way = f"rollback --to {previous.version}" if taken_back else "rollback"
        text = f"version {previous.version}, {previous.checkpoint}"
        rows.append(("previous", f"{text} (`ratchet {way}` restores it)"))
    return rows


def _automation(home: Home) -> list[tuple[str, str]]:
    """Return daemon and last night, as `ratchet health`, `ratchet watch` or the daemon last saw
    them.
    """
    if not (kept := kept_findings(home.path)):
        return [("daemon", "not checked yet (`ratchet health` checks it)")]
    at, found = kept
    rows = []
    for part in ("daemon", "last night", "next night"):
        if (finding := found.get(part)) and (part != "next night" or finding.blocks):
            text = escape(f"{finding.found}, as of {at:%Y-%m-%d %H:%M} UTC")
            rows.append((part, f"[yellow]{text}[/]" if finding.blocks else text))
    return rows


def stale(settings: Settings, damage: Damage) -> list[str]:
    """Return a sentence for each dataset whose inputs have changed since it was made."""
    from problems.verification.chosen_limits import input_of, read_choice

    current: dict[str, Manifest] = {}
    lines: list[str] = []
    for name in PREPARING:
        with damage.collected():
            if manifest := settings.store.current_manifest("datasets", name):
                current[name] = manifest
    raw, verified = current.get("raw_problems"), current.get("verified_problems")
    with damage.collected():
        lines += _changed_sources(raw, settings.home) if raw else []
    with damage.collected():
        limits = input_of(read_choice(settings.home.path)).get("limits")
        if verified and verified.inputs.get("limits") != limits:
            lines.append("verified_problems: its limits have changed")
    return lines + [
        f"{name}: {source} has changed"
        for name, manifest in current.items()
        for source, content in manifest.inputs.items()
        if source in current and current[source].content_hash != content
    ]


def _changed_sources(raw: Manifest, home: Home) -> list[str]:
    """Return a sentence for each source that differs from the one that was read."""
    from problems.catalogue import read_sources

    places = read_sources(home.path)
    lines = []
    if sorted(places) != sorted(raw.inputs):
        lines.append(
            f"problems: the sources are {', '.join(places) or 'none'}; those read are "
            f"{', '.join(raw.inputs) or 'none'}"
        )
    for name, place in places.items():
        if place.path is None:
            if raw.inputs.get(name, place.content) != place.content:
                lines.append(f"problems: source {name} has a new commit on the hub")
        elif not place.path.exists():
            lines.append(f"problems: source {name}: {place.path} does not exist")
        elif name in raw.inputs and _is_newer(place.path, raw):
            lines.append(f"problems: the file of source {name} has changed since it was read")
    return lines


def _champion(entry: Entry, store: Store) -> str:
    """Return the champion's version, checkpoint and date in one line."""
    whole = Path(entry.path).is_dir() or holds(store, entry.path)
    missing = "" if whole else "  [red](its folder is missing)[/]"
    how = {"install": "installed as the first", "promote": "promoted", "rollback": "restored"}[
        entry.kind
    ]
    return f"version {entry.version}, {entry.checkpoint}, {how} {entry.created_at}{missing}"


def _early_stop(home: Home, record: RunRecord) -> str:
    """Return why the newest training of a pipeline run stopped early; "" if it did not."""
    stopped_files = sorted(
        (home.runs / record.id / "training").glob("*/stopped.json"),
        key=lambda path: path.stat().st_mtime,
    )
    if record.kind != "pipeline" or not stopped_files:
        return ""
    return escape(f"; its training stopped early: {stop_reason(stopped_files[-1].parent)}")


def _run_line(record: RunRecord, running: bool) -> str:
    """Return state, decision, error and origin of a run in one line."""
    command = (
        "the command that started it"
        if record.kind in ("study", "score")
        else "the next `ratchet demo`"
    )
    state = (
        "running"
        if running
        else {"open": f"interrupted, {command} resumes it", "done": "done", "failed": "failed"}[
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


def _is_newer(file: Path, manifest: Manifest) -> bool:
    """Return whether a file was written after this artifact was made."""
    from datetime import datetime

    made = datetime.fromisoformat(manifest.created_at).timestamp()
    return file.is_file() and file.stat().st_mtime > made


def command(
    provenance: Annotated[
        bool, typer.Option("--provenance", help="Trace the champion back to the raw problems.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show the champion, running pipeline runs, and datasets that are out of date."""
    from cli.provenance import show_champion

    if provenance:
        raise typer.Exit(show_champion(Settings.read(), screen()))
    raise typer.Exit(show_status(Settings.read(), screen(), as_json=as_json))


COMMAND = Command("Run", command)
