"""The training lease: among all homes on one database, one process trains at a time.

The lease is a row with a token that each holder raises. In: where the lease is, of a home. Out: the
lease, or `LeaseHeld` with its holder and the time. A holder renews it in the background. It is free
again when its process has ended, as far as that can be seen from here, or when it was not renewed
for `TERM_S` on the database's clock. A holder that was suspended and lost it that way gets
`LeaseLost` at its next save, publication or promotion: `check` compares the tokens.
"""

from __future__ import annotations

import atexit
import os
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from resources.registry.ledger_database import (
    LedgerUnreachable,
    PostgresServer,
    Schema,
    SqliteFile,
    database,
)

TERM_S, RENEW_S = 60.0, 10.0
TABLE = (
    "CREATE TABLE IF NOT EXISTS training_lease (token BIGINT NOT NULL, run_id TEXT NOT NULL, "
    "host TEXT NOT NULL, home TEXT NOT NULL, pid BIGINT NOT NULL, start TEXT NOT NULL, "
    "since TEXT NOT NULL, renewed DOUBLE PRECISION NOT NULL);"
)
SCHEMA = Schema("the lease", "training_lease", "training_lease", TABLE, TABLE, 0x7261_7463_0004)
COLUMNS = ("token", "run_id", "host", "home", "pid", "start", "since")


@dataclass(frozen=True)
class LeasePlace:
    """Where a home's lease is: a SQLite file or a `postgresql://` URL."""

    place: Path | str
    home: Path

    @cached_property
    def database(self) -> SqliteFile | PostgresServer:
        return database(self.place, SCHEMA)

    def __str__(self) -> str:
        return str(self.home if isinstance(self.place, Path) else self.place)


class Holder(BaseModel):
    """The training that holds a lease.

    host, home, pid, start: its process, with the ticks since boot at which it began.
    """

    model_config = ConfigDict(frozen=True)

    token: int
    run_id: str
    host: str
    home: str
    pid: int
    start: str
    since: str  # UTC, ISO 8601

    @property
    def here(self) -> bool:
        """Whether it is a process of this machine."""
        return self.host == socket.gethostname()

    def __str__(self) -> str:
        where = f"process {self.pid}" if self.here else f"process {self.pid} on {self.host}"
        return f"{self.run_id} ({where}) since {self.since} UTC"


class LeaseHeld(RuntimeError):
    def __init__(self, holder: Holder | None, lease: LeasePlace) -> None:
        super().__init__(
            f"{lease} is training already: {holder or 'another process'}. Wait for it, "
            "or use another RATCHET_HOME"
        )
        self.holder = holder


class LeaseLost(RuntimeError):
    """Another process took the lease over, because this one did not renew it in time."""

    def __init__(self, run_id: str, holder: Holder | None) -> None:
        by = f" to {holder}" if holder else ""
        super().__init__(
            f"{run_id} has lost the training lease{by}, because it was not renewed for "
            f"{TERM_S:.0f} s: it saves, publishes and promotes nothing more; `ratchet status` "
            "shows who continues it"
        )


class _Held:
    """The lease of this process, renewed in the background until `stop` is set."""

    def __init__(self, lease: LeasePlace, token: int, run_id: str) -> None:
        self.lease, self.token, self.run_id, self.pid = lease, token, run_id, os.getpid()
        self.lost, self.stop = False, threading.Event()
        threading.Thread(target=self._renew, daemon=True, name="training lease").start()

    def _renew(self) -> None:
        where = self.lease.database
        while not self.stop.wait(RENEW_S):
            try:
                with where.writing() as cursor:
                    cursor.execute(
                        f"UPDATE training_lease SET renewed = {where.clock} "
                        f"WHERE token = {where.mark} AND run_id <> ''",
                        (self.token,),
                    )
                    self.lost = cursor.rowcount == 0 and not self.stop.is_set()
            except LedgerUnreachable:  # nobody else can take it either
                continue
            if self.lost:
                return


_HELD: dict[LeasePlace, _Held] = {}  # of this process, until it ends or releases them


@atexit.register
def _release_all() -> None:
    """Release what this process holds when it ends, so that other homes need not wait `TERM_S`."""
    for lease in [lease for lease, mine in _HELD.items() if mine.pid == os.getpid()]:
        with suppress(LedgerUnreachable):
            release(lease)


def take(lease: LeasePlace, run_id: str) -> int:
    """Take the lease for this process, or keep it if the process has it; return its token.

    Raises LeaseHeld, LeaseLost, LedgerUnreachable.
    """
    where = lease.database
    if mine := _HELD.get(lease):
        check(lease)
        with where.writing() as cursor:
            cursor.execute(
                f"UPDATE training_lease SET run_id = {where.mark} WHERE token = {where.mark}",
                (run_id, mine.token),
            )
        mine.run_id = run_id
        return mine.token
    with where.writing() as cursor:
        present, quiet_s = _row(lease, cursor)
        if present and _lives(present, quiet_s, lease):
            raise LeaseHeld(present, lease)
        # By the clock, so that it is later than all earlier ones also in a database that was
        # restored or begun again: the mirrors of trainings remember them (fence.py).
        cursor.execute(f"SELECT COALESCE(MAX(token), 0), {where.clock} FROM training_lease")
        last, now_s = cursor.fetchone()
        token = max(int(last) + 1, int(1000 * float(now_s)))
        cursor.execute("DELETE FROM training_lease")
        since = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
        process = (socket.gethostname(), str(lease.home), os.getpid(), _start(os.getpid()))
        marks = ", ".join([where.mark] * len(COLUMNS))
        cursor.execute(
            f"INSERT INTO training_lease VALUES ({marks}, {where.clock})",
            (token, run_id, *process, since),
        )
    _HELD[lease] = _Held(lease, token, run_id)
    return token


def release(lease: LeasePlace) -> None:
    """Release the lease, if this process holds it. The row stays, with its token."""
    if mine := _HELD.pop(lease, None):
        mine.stop.set()
        where = lease.database
        with where.writing() as cursor:
            cursor.execute(
                f"UPDATE training_lease SET run_id = '' WHERE token = {where.mark}", (mine.token,)
            )


def holder(lease: LeasePlace) -> Holder | None:
    """Return the holder of the lease, or None. The lease of a dead process is free."""
    with lease.database.reading() as cursor:
        present, quiet_s = _row(lease, cursor) if cursor else (None, 0.0)
    return present if present and _lives(present, quiet_s, lease) else None


def token(lease: LeasePlace) -> int:
    """Return the token of this process's lease; 0 if it has taken none."""
    return mine.token if (mine := _HELD.get(lease)) else 0


def check(lease: LeasePlace) -> None:
    """Raise LeaseLost if this process took the lease and another one has taken it since.

    Called before each publication and promotion. A process that took none may do what needs none.
    """
    if mine := _HELD.get(lease):
        with lease.database.reading() as cursor:
            present, _ = _row(lease, cursor) if cursor else (None, 0.0)
        if present is None or present.token != mine.token:
            raise LeaseLost(mine.run_id, present)


def check_renewal(lease: LeasePlace) -> None:
    """As `check`, from what the last renewal found: without a question to the database."""
    if (mine := _HELD.get(lease)) and mine.lost:
        check(lease)
        raise LeaseLost(mine.run_id, None)


def _row(lease: LeasePlace, cursor: Any) -> tuple[Holder | None, float]:
    """Return the holder in the row, and the seconds since it was last renewed."""
    clock = lease.database.clock
    names = ", ".join(COLUMNS)
    cursor.execute(f"SELECT {names}, {clock} - renewed FROM training_lease WHERE run_id <> ''")
    if (row := cursor.fetchone()) is None:
        return None, 0.0
    return Holder(**dict(zip(COLUMNS, row[:-1], strict=True))), float(row[-1])


def _lives(holder: Holder, quiet_s: float, lease: LeasePlace) -> bool:
    """Whether a holder still has the lease. Of its own home and machine its process is looked at: a
    machine that slept renewed nothing, and another look would take a living holder's lease.
    """
    if holder.here and holder.home == str(lease.home):
        return _start(holder.pid) == holder.start
    return quiet_s < TERM_S


def _start(pid: int) -> str:
    """Return when a process began, in ticks since boot (proc(5)); "" if it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]
