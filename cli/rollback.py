"""Make the previous champion champion again."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from artifacts.atomic import write_atomic
from cli.options import (
    ProfileOption,
)
from cli.registry import sync_mlflow
from resources.registry.ledger import Ledger, NothingToRollBack, Superseded
from resources.settings import Settings

GROUP = "Promote and explain"


SAME_S = (
    600.0  # a rollback that was killed and is asked for again within this time is the same rollback
)


@dataclass(frozen=True)
class PendingRollback:
    """A requested rollback, kept until it is complete: killed at any point and repeated, it undoes
    nothing twice.
    """

    chain: str
    undoing: int  # the champion's entry then
    to: int | None
    at: float


def rollback(to: int | None, reason: str, settings: Settings, console: Console) -> int:
    """Raises NothingToRollBack, Superseded, LedgerUnreachable: nothing is changed then."""
    home = settings.home
    ledger, kept = settings.ledger, home.path / "rollback.json"
    begun = _begun(kept, ledger, to)
    try:
        entry = ledger.rollback(begun.chain, reason, to=to, undoing=begun.undoing)
    except (NothingToRollBack, Superseded):
        kept.unlink(missing_ok=True)  # answered: the next one is another
        raise
    console.print("\n".join(entry.decision["reasons"]), highlight=False, soft_wrap=True)
    sync_mlflow(settings.registry, ledger, console)
    kept.unlink(missing_ok=True)
    return 0


def _begun(kept: Path, ledger: Ledger, to: int | None) -> PendingRollback:
    """The rollback that was killed a moment ago, or a new one."""
    if kept.exists():
        begun = PendingRollback(**json.loads(kept.read_text(encoding="utf-8")))
        last = next(iter(ledger.history()[::-1]), None)
        resumes = last is not None and (
            begun.chain == last.chain or begun.undoing == _champion(ledger)
        )
        if resumes and begun.to == to and time.time() - begun.at < SAME_S:
            return begun
    begun = PendingRollback(f"rollback-{time.time_ns()}", _champion(ledger), to, time.time())
    if begun.undoing:
        write_atomic(kept, json.dumps(asdict(begun)))
    return begun


def _champion(ledger: Ledger) -> int:
    return champion.entry if (champion := ledger.champion()) else 0


def command(
    to: Annotated[
        int | None,
        typer.Option(help="Version to go back to; without it the champion before this one."),
    ] = None,
    reason: Annotated[str, typer.Option(help="Kept in the ledger.")] = "",
    profile: ProfileOption = None,
) -> None:
    """Make the previous champion champion again."""
    raise typer.Exit(rollback(to, reason, Settings.read(profile), Console()))
