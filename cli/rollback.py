"""Make an earlier champion champion again."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from artifacts.atomic import write_atomic
from artifacts.integrity import reading
from cli.app.commands import Command
from cli.app.confirm import confirmed
from cli.app.options import ProfileOption, YesOption
from cli.display.screen import screen
from cli.registry import sync_mlflow
from pipelines.watch.text import print_text
from resources.registry.ledger import (
    Entry,
    NothingToRollBack,
    Superseded,
    champion_of,
    champions,
    named,
    previous_of,
)
from resources.settings import Settings

SAME_S = 600.0  # a killed rollback that is requested again within this time is the same rollback


@dataclass(frozen=True)
class PendingRollback:
    """A requested rollback, stored in the home until it is complete.

    So a command that is killed and repeated rolls back only once.
    """

    run_id: str
    undoing: int  # entry of the champion at the time
    to: int | None
    at: float


def rollback(to: int | None, reason: str, settings: Settings, console: Console) -> int:
    """Make an earlier champion champion again, and sync MLflow.

    Raises NothingToRollBack, Superseded or LedgerUnreachable; nothing has changed then.
    """
    ledger, file = settings.ledger, settings.home.path / "rollback.json"
    pending = _pending(file, settings.history, to)
    try:
        entry = ledger.rollback(pending.run_id, reason, to=to, undoing=pending.undoing)
    except (NothingToRollBack, Superseded):
        file.unlink(missing_ok=True)  # the request is answered; a repeated one is a new one
        raise
    print_text(console, "\n".join(entry.decision["reasons"]))
    if previous := previous_of(ledger.history()):
        undo = f"ratchet rollback --to {previous.version}"
        print_text(console, f"To undo this: `{undo}` makes {named(previous)} champion again")
    sync_mlflow(settings.registry, ledger)
    file.unlink(missing_ok=True)
    return 0


def _pending(file: Path, history: Sequence[Entry], to: int | None) -> PendingRollback:
    """Return the rollback that was killed a moment ago, else a new one."""
    if file.exists():
        with reading(file, "delete it; `ratchet status` shows whether the rollback was done"):
            pending = PendingRollback(**json.loads(file.read_text(encoding="utf-8")))
        last = next(iter(history[::-1]), None)
        resumes = last is not None and (
            pending.run_id == last.run_id or pending.undoing == _champion_entry(history)
        )
        if resumes and pending.to == to and time.time() - pending.at < SAME_S:
            return pending
    pending = PendingRollback(
        f"rollback-{time.time_ns()}", _champion_entry(history), to, time.time()
    )
    if pending.undoing:
        write_atomic(file, json.dumps(asdict(pending)))
    return pending


def _champion_entry(history: Sequence[Entry]) -> int:
    """Return the number of the champion's entry; 0 without a champion."""
    return champion.entry if (champion := champion_of(history)) else 0


def _question(history: Sequence[Entry], to: int | None) -> str:
    target = f"version {to}" if to else named(champions(history)[-2])
    return f"{named(champion_of(history))} is champion. Make {target} champion instead?"


def command(
    to: Annotated[
        int | None,
        typer.Option(
            help="Version to restore; one that was taken back too. Default: the champion before."
        ),
    ] = None,
    reason: Annotated[str, typer.Option(help="Reason, recorded in the ledger.")] = "",
    yes: YesOption = False,
    profile: ProfileOption = None,
) -> None:
    """Make an earlier champion champion again, after a question."""
    settings = Settings.read(profile)
    least = 1 if to else 2  # with fewer champions the error says what is missing
    possible = len(champions(settings.history)) >= least
    if possible and not confirmed(_question(settings.history, to), yes):
        raise typer.Exit(1)
    raise typer.Exit(rollback(to, reason, settings, screen()))


COMMAND = Command("Promote and explain", command)
