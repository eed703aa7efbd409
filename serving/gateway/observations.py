"""Record of answered requests and of feedback: two append-only tables of one SQLite file.

In: an `Observation` for each answered request, and votes by response id. Out: both, in the order in
which they were recorded. It holds no prompt, no completion, no API key and no user's name: keys and
users are hashes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, fields
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from resources.registry.ledger_database import sqlite_triggers

WAIT_S = 30.0  # wait for another process that writes
TOGETHER = 1000  # rows of one statement; SQLite takes 32,766 values
FALLBACK, NAMED = "fallback", "named"  # arms outside of any comparison
ErrorKind = Literal[
    "", "timeout", "overloaded", "engine", "unavailable", "suspended", "gone", "refused",
    "declined", "shaped",
]  # fmt: skip
DAY_S = 86_400


@dataclass(frozen=True)
class Observation:
    """One answered request, or a shadow's copy of one. Times are in seconds.

    response: id of the response without its prefix (`chatcmpl-`); with the suffix `-failed`, an
    attempt of a version that failed before its first token, after which another version may have
    answered. That answer has the arm "fallback"; a version that the client named has "named".
    time: when the answer ended, since 1970. version, arm, share, release, step: of the router's
    `Choice`. unit: hash of the user, or of the request where it names none. key: hash of the API
    key, "" without one. first_token_s: None if no token came.
    error: "" for a complete answer; "timeout" its deadline passed; "overloaded" the queue was full;
    "engine" the engine failed; "unavailable" the version's circuit breaker was open, and another
    version may have answered; "suspended" it failed, and the gateway stood still meanwhile; "gone"
    the client left; "refused" the request was invalid for the model; "declined" the answer is
    complete, and a refusal (declined.py); "shaped" it is complete, and the client's tools, stop
    words or few tokens decide its form. Only "timeout", "engine" and "unavailable" are failures of
    a version.
    verified: whether the answer passed the request's tests; None if it had none.
    shadow: the answer was not returned to anybody.
    """

    response: str
    time: float
    version: int
    arm: str
    share: float
    release: str
    step: int
    unit: str
    key: str
    first_token_s: float | None
    total_s: float
    prompt_tokens: int
    completion_tokens: int
    error: ErrorKind = ""
    verified: bool | None = None
    shadow: bool = False


@dataclass(frozen=True)
class Feedback:
    """One vote on a response, by the key that sent it. value: 1 accepted, 0 rejected, between for
    edited. Several votes of a key on a response are kept; the last one counts.
    """

    response: str
    time: float
    key: str
    unit: str
    value: float


def append_only(table: str) -> str:
    """Return SQL that makes a table with a column `number` refuse changes and deletions."""
    return "".join(sqlite_triggers(table, "number = NEW.number", f"{table}_"))


TABLES = {"observations": Observation, "feedback": Feedback}
COLUMNS = {name: tuple(f.name for f in fields(kind)) for name, kind in TABLES.items()}
SCHEMA = (
    "CREATE TABLE IF NOT EXISTS observations (number INTEGER PRIMARY KEY, response TEXT NOT NULL, "
    "time REAL NOT NULL, version INTEGER NOT NULL, arm TEXT NOT NULL, share REAL NOT NULL, "
    "release TEXT NOT NULL, step INTEGER NOT NULL, unit TEXT NOT NULL, key TEXT NOT NULL, "
    "first_token_s REAL, total_s REAL NOT NULL, prompt_tokens INTEGER NOT NULL, "
    "completion_tokens INTEGER NOT NULL, error TEXT NOT NULL, verified INTEGER, "
    "shadow INTEGER NOT NULL);"
    "CREATE TABLE IF NOT EXISTS feedback (number INTEGER PRIMARY KEY, response TEXT NOT NULL, "
    "time REAL NOT NULL, key TEXT NOT NULL, unit TEXT NOT NULL, value REAL NOT NULL);"
    "CREATE INDEX IF NOT EXISTS by_response ON observations (response);"
    "CREATE INDEX IF NOT EXISTS by_release ON observations (release, number);"
    "CREATE INDEX IF NOT EXISTS by_vote ON feedback (response);"
    "CREATE INDEX IF NOT EXISTS by_verdict ON observations (version, number) "
    "WHERE verified IS NOT NULL;"
) + "".join(map(append_only, TABLES))


class Observations:
    """The record of answered requests and of votes on them.

    path: created at the first write. Any thread or process may call any method.

    The connection that writes stays open until `close`: to open it takes three times as long as to
    write 20 rows, and requests wait meanwhile.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        self._writer: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None  # that the writer has open

    def append(self, rows: Sequence[Observation | Feedback]) -> None:
        """Record rows permanently, all or none."""
        with self._lock:
            try:
                with self._open() as connection:
                    for table, kind in TABLES.items():
                        part = [row for row in rows if isinstance(row, kind)]
                        for at in range(0, len(part), TOGETHER):
                            _insert(connection, table, part[at : at + TOGETHER])
            except sqlite3.Error:
                self._close()  # a file that was opened on a read-only disk would never take a row
                raise

    def close(self) -> None:
        """Close the connection that writes; the next `append` opens it again."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._writer:
            self._writer.close()
        self._writer = None

    def _open(self) -> sqlite3.Connection:
        """Return the connection that writes to the file that is at `path` now."""
        if self._writer and self._file == _identity(self.path):
            return self._writer
        self._close()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._writer = sqlite3.connect(self.path, timeout=WAIT_S, check_same_thread=False)
        self._writer.execute("PRAGMA journal_mode=WAL")
        self._writer.executescript(SCHEMA)
        self._file = _identity(self.path)
        return self._writer

    def read(self, after: int = 0, release: str | None = None) -> Iterator[tuple[int, Observation]]:
        """Yield (number, observation) of those recorded after this number, oldest first.

        release: only of this release; None: of all.
        """
        where, values = "number > ?", [after]  # type: tuple[str, list[Any]]
        if release is not None:
            where, values = f"{where} AND release = ?", [after, release]
        for number, *row in self._rows("observations", where, values):
            yield number, _observation(row)

    def totals(self, release: str, last: int) -> list[float]:
        """Return sums over the columns of a release's observations up to number `last`. Computed by
        SQLite, so much faster than reading them.
        """
        errors = "SUM(LENGTH(error) + 31 * UNICODE(error || ' '))"
        verified = "SUM(CASE verified WHEN 1 THEN 1 WHEN 0 THEN 1000 ELSE 0 END)"
        sums = (
            f"COUNT(*), TOTAL(number), TOTAL(version * number), TOTAL(step * number), {errors}, "
            f"TOTAL(total_s), TOTAL(completion_tokens), TOTAL(shadow), {verified}"
        )
        rows = self._rows("observations", "release = ? AND number <= ?", [release, last], [sums])
        return [float(value or 0) for value in rows[0]] if rows else []

    def last_day(self, now: float) -> list[float]:
        """Return of the answers of the day before `now`, to requests that named no version: the
        number of their users or requests, the shares of failed and declined ones, mean and variance
        of their tokens, the number of those with tests, and the share that failed them.
        """
        errors = "AVG(error IN ('timeout', 'engine', 'unavailable'))"
        square = "AVG(1.0 * completion_tokens * completion_tokens)"
        columns = [
            f"COUNT(DISTINCT unit), {errors}, AVG(error = 'declined'), AVG(completion_tokens), "
            f"{square}, COUNT(verified), AVG(1 - verified)"
        ]
        where = "time > ? AND time <= ? AND shadow = 0 AND arm NOT IN (?, ?)"
        rows = self._rows("observations", where, [now - DAY_S, now, FALLBACK, NAMED], columns)
        units, failed, declined, mean, square_mean, tested, wrong = (
            (float(value or 0) for value in rows[0]) if rows else [0.0] * 7
        )
        return [units, failed, declined, mean, square_mean - mean**2, tested, wrong]

    def votes_on(self, release: str) -> list[Feedback]:
        """Return the votes on the responses of a release, oldest first."""
        where = "response IN (SELECT response FROM observations WHERE release = ?)"
        return [Feedback(*row) for _, *row in self._rows("feedback", where, [release])]

    def verdicts(self, version: int) -> list[bool]:
        """Return whether this version's answers passed their tests, oldest first: the first answer
        to each user, returned ones only, without those to requests that name the version.
        """
        where = "version = ? AND verified IS NOT NULL AND shadow = 0 AND arm NOT IN (?, ?)"
        # SQLite takes `verified` from the row that has the least number.
        names, where = ("MIN(number) AS number", "verified"), f"{where} GROUP BY unit"
        rows = self._rows("observations", where, [version, FALLBACK, NAMED], names)
        return [bool(verified) for _, verified in rows]

    def of(self, response: str) -> Observation | None:
        """Return the observation of a response that was returned, or None."""
        rows = self._rows("observations", "response = ? AND shadow = 0", [response])
        return next((_observation(row) for _, *row in rows), None)

    def _rows(
        self, table: str, where: str, values: Sequence[Any], names: Sequence[str] = ()
    ) -> list[tuple[Any, ...]]:
        if not self.path.exists():
            return []
        with closing(sqlite3.connect(self.path, timeout=WAIT_S)) as connection:
            columns = ", ".join(names or ("number", *COLUMNS[table]))
            query = f"SELECT {columns} FROM {table} WHERE {where} ORDER BY number"
            exists = "SELECT 1 FROM sqlite_master WHERE name = ?"
            if connection.execute(exists, [table]).fetchone() is None:
                return []
            return connection.execute(query, values).fetchall()


def _identity(path: Path) -> tuple[int, int] | None:
    """Return the file's device and inode, which differ for another file of the same name; None if
    there is no file.
    """
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _insert(connection: sqlite3.Connection, table: str, rows: Sequence[Any]) -> None:
    """Insert rows with one statement: between two statements this thread takes Python's lock again,
    and the event loop, which answers requests, waits for it.
    """
    names = COLUMNS[table]
    marks = ", ".join([f"({', '.join('?' * len(names))})"] * len(rows))
    values = [getattr(row, name) for row in rows for name in names]
    connection.execute(f"INSERT INTO {table} ({', '.join(names)}) VALUES {marks}", values)


def _observation(row: Sequence[Any]) -> Observation:
    named = dict(zip(COLUMNS["observations"], row, strict=True))
    verified = None if named["verified"] is None else bool(named["verified"])
    return Observation(**named | {"verified": verified, "shadow": bool(named["shadow"])})
