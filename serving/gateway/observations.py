"""Record of answered requests and of feedback: two append-only tables, in a SQLite file or on the
Postgres server of the other records.

In: an `Observation` for each answered request, and votes by response id. Out: both, in the order in
which they were recorded. It holds no prompt, no completion, no API key and no user's name: keys and
users are hashes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from resources.registry.ledger_database import Schema, database, has_table, sqlite_triggers

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
SQLITE = (
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
POSTGRES = (
    SQLITE.partition("CREATE TRIGGER")[0]
    .replace("number INTEGER PRIMARY KEY", "number BIGSERIAL PRIMARY KEY")
    .replace(" REAL", " DOUBLE PRECISION")
) + "".join(
    f"CREATE OR REPLACE FUNCTION {table}_are_kept() RETURNS trigger LANGUAGE plpgsql AS "
    f"$$ BEGIN RAISE EXCEPTION '{table} is append-only'; END $$;"
    f"CREATE OR REPLACE TRIGGER {table}_never_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON "
    f"{table} EXECUTE FUNCTION {table}_are_kept();"
    for table in TABLES
)
SCHEMA = Schema(
    "the observations", "observations", "feedback", SQLITE, POSTGRES, lock=0x7261_7463_0007
)


class Observations:
    """The record of answered requests and of votes on them.

    path: the SQLite file, created at the first write. url: of a Postgres server that has the rows
    instead, of all gateways; they are numbered in the order in which they become visible. Any
    thread or process may call any method.

    The connection that writes to a file stays open until `close`: to open it takes three times as
    long as to write 20 rows, and requests wait meanwhile.
    """

    def __init__(self, path: Path, url: str = "") -> None:
        self.path, self.url = path, url
        self._database = database(url or path, SCHEMA)
        self._lock = Lock()
        self._writer: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None  # that the writer has open

    def append(self, rows: Sequence[Observation | Feedback]) -> None:
        """Record rows permanently, all or none."""
        with self._lock:
            if self.url:
                with self._database.writing() as cursor:
                    self._insert(cursor, rows)
                return
            try:
                with self._open() as connection:
                    self._insert(connection, rows)
            except sqlite3.Error:
                self._close()  # a file that was opened on a read-only disk would never take a row
                raise

    def _insert(self, cursor: Any, rows: Sequence[Observation | Feedback]) -> None:
        """Insert many rows with one statement: between two statements this thread takes Python's
        lock again, and the event loop, which answers requests, waits for it.
        """
        for table, kind in TABLES.items():
            names, part = COLUMNS[table], [row for row in rows if isinstance(row, kind)]
            for at in range(0, len(part), TOGETHER):
                several = part[at : at + TOGETHER]
                row_marks = f"({', '.join([self._database.mark] * len(names))})"
                marks = ", ".join([row_marks] * len(several))
                values = [_stored(getattr(row, name)) for row in several for name in names]
                cursor.execute(f"INSERT INTO {table} ({', '.join(names)}) VALUES {marks}", values)

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
        self._writer.executescript(SQLITE)
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
        the database, so much faster than reading them.
        """
        first = "ASCII" if self.url else "UNICODE"  # the number of a text's first sign
        errors = f"SUM(LENGTH(error) + 31 * {first}(error || ' '))"
        verified = "SUM(CASE verified WHEN 1 THEN 1 WHEN 0 THEN 1000 ELSE 0 END)"
        sums = (
            f"COUNT(*), SUM(number), SUM(version * number), SUM(step * number), {errors}, "
            f"SUM(total_s), SUM(completion_tokens), SUM(shadow), {verified}"
        )
        rows = self._rows("observations", "release = ? AND number <= ?", [release, last], [sums])
        return [float(value or 0) for value in rows[0]] if rows else []

    def last_day(self, now: float) -> list[float]:
        """Return of the answers of the day before `now`, to requests that named no version: the
        number of their users or requests, the shares of failed and declined ones, mean and variance
        of their tokens, the number of those with tests, and the share that failed them.
        """
        columns = [
            "COUNT(DISTINCT unit)",
            "AVG(CASE WHEN error IN ('timeout', 'engine', 'unavailable') THEN 1.0 ELSE 0.0 END)",
            "AVG(CASE WHEN error = 'declined' THEN 1.0 ELSE 0.0 END)",
            "AVG(1.0 * completion_tokens)",
            "AVG(1.0 * completion_tokens * completion_tokens)",
            "COUNT(verified)",
            "AVG(1.0 - verified)",
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
        first = f"number IN (SELECT MIN(number) FROM observations WHERE {where} GROUP BY unit)"
        names = ("number", "verified")
        rows = self._rows("observations", first, [version, FALLBACK, NAMED], names)
        return [bool(verified) for _, verified in rows]

    def of(self, response: str) -> Observation | None:
        """Return the observation of a response that was returned, or None."""
        rows = self._rows("observations", "response = ? AND shadow = 0", [response])
        return next((_observation(row) for _, *row in rows), None)

    def _rows(
        self, table: str, where: str, values: Sequence[Any], names: Sequence[str] = ()
    ) -> list[tuple[Any, ...]]:
        columns = ", ".join(names or ("number", *COLUMNS[table]))
        order = "" if names and "number" not in names else "ORDER BY number"  # of sums: one row
        query = f"SELECT {columns} FROM {table} WHERE {where} {order}"
        with self._reading(table) as cursor:
            if cursor is None:
                return []
            cursor.execute(query.replace("?", self._database.mark), values)
            return list(cursor.fetchall())

    @contextmanager
    def _reading(self, table: str) -> Iterator[Any]:
        """Yield a cursor; None without the table."""
        if self.url:
            with self._database.reading() as cursor:
                yield cursor
        elif not self.path.exists():
            yield None
        else:
            with closing(sqlite3.connect(self.path, timeout=WAIT_S)) as connection:
                yield connection.cursor() if has_table(connection.cursor(), table) else None


def _identity(path: Path) -> tuple[int, int] | None:
    """Return the file's device and inode, which differ for another file of the same name; None if
    there is no file.
    """
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _stored(value: Any) -> Any:
    """Return a value as it is stored: what is true or false is a number."""
    return int(value) if isinstance(value, bool) else value


def _observation(row: Sequence[Any]) -> Observation:
    named = dict(zip(COLUMNS["observations"], row, strict=True))
    verified = None if named["verified"] is None else bool(named["verified"])
    return Observation(**named | {"verified": verified, "shadow": bool(named["shadow"])})
