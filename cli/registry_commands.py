"""What `ratchet rollback` and `ratchet registry` do. The ledger first, MLflow after it: where that cannot be told, the ledger stands."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from artifacts.store import write_atomic
from resources.home import Home
from resources.registry.ledger import Entry, Ledger, NothingToRollBack, Superseded, ledger_of
from resources.registry.mlflow import Registry, aliases_of, registry_of

SAME_S = (
    600.0  # a rollback that was killed and is asked for again within this time is the same rollback
)


@dataclass(frozen=True)
class Begun:
    """A rollback as it was asked for, kept until it has been told: killed at any point and repeated, it undoes nothing twice."""

    chain: str
    undoing: int  # the champion's entry then
    to: int | None
    at: float


def rollback(to: int | None, reason: str, profile: str | None, console: Console) -> int:
    """Raises NothingToRollBack, Superseded, LedgerUnreachable: nothing is changed then."""
    home = Home.from_environment()
    ledger, kept = ledger_of(home, profile), home.path / "rollback.json"
    begun = _begun(kept, ledger, to)
    try:
        entry = ledger.rollback(begun.chain, reason, to=to, undoing=begun.undoing)
    except (NothingToRollBack, Superseded):
        kept.unlink(missing_ok=True)  # answered: the next one is another
        raise
    console.print("\n".join(entry.decision["reasons"]), highlight=False, soft_wrap=True)
    _tell(registry_of(home, profile), ledger, console)
    kept.unlink(missing_ok=True)
    return 0


def show_registry(profile: str | None, console: Console) -> int:
    """Every version that came to the gate, newest first; MLflow is told first what it was not told. Exits 1 where it cannot be told."""
    home = Home.from_environment()
    ledger, registry = ledger_of(home, profile), registry_of(home, profile)
    if not (history := ledger.history()):
        console.print("Nothing has come to the gate yet: `ratchet demo` makes the first version.")
        return 0
    told = _tell(registry, ledger, console)
    console.width = max(console.width, 120)
    console.print(_versions(history))
    console.print(
        f"ledger {ledger.place}, MLflow {registry.uri}, model `ratchet`",
        style="dim",
        soft_wrap=True,
        highlight=False,
    )
    return 0 if told else 1


def outcome(history: list[Entry], entry: Entry) -> str:
    """What a decision came to, and what became of it since, in words."""
    first = {
        "install": "installed as the first",
        "promote": "promoted",
        "refuse": "not promoted",
        "rollback": "put back",
    }[entry.kind]
    later = [other for other in history if other.entry > entry.entry]
    undone = next(
        (
            other
            for other in later
            if entry.entry in other.decision.get("undone_entries", [other.decision.get("undone")])
        ),
        None,
    )
    if undone:
        return f"{first}, taken back by entry {undone.entry} ({undone.created_at[:10]})"
    return first


def _begun(kept: Path, ledger: Ledger, to: int | None) -> Begun:
    """The rollback that was killed a moment ago, or a new one."""
    if kept.exists():
        begun = Begun(**json.loads(kept.read_text(encoding="utf-8")))
        last = next(iter(ledger.history()[::-1]), None)
        goes_on = last is not None and (
            begun.chain == last.chain or begun.undoing == _champion(ledger)
        )
        if goes_on and begun.to == to and time.time() - begun.at < SAME_S:
            return begun
    begun = Begun(f"rollback-{time.time_ns()}", _champion(ledger), to, time.time())
    if begun.undoing:
        write_atomic(kept, json.dumps(asdict(begun)))
    return begun


def _champion(ledger: Ledger) -> int:
    return champion.entry if (champion := ledger.champion()) else 0


def _tell(registry: Registry, ledger: Ledger, console: Console) -> bool:
    if behind := registry.follow(ledger):
        console.print(behind, style="yellow", highlight=False, soft_wrap=True)
    return not behind


def _versions(history: list[Entry]) -> Table:
    table = Table(
        "version", "aliases", "checkpoint", "what came of it", "when", box=None, header_style="bold"
    )
    stands: dict[int, list[str]] = {}
    for alias, entry in aliases_of(history).items():
        stands.setdefault(entry.version, []).append(alias)
    for entry in [entry for entry in history[::-1] if entry.kind != "rollback"]:
        aliases = ", ".join(stands.pop(entry.version, []))
        table.add_row(
            str(entry.version),
            f"[green]{aliases}[/]",
            entry.checkpoint,
            outcome(history, entry),
            entry.created_at[:16].replace("T", " "),
        )
    return table
