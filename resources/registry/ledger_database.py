"""Database of the ledger: a SQLite file, or a table of a Postgres server for several machines.

Both have the same table and the same guarantees.
In: a path or a `postgresql://` URL. Out: a read transaction, an exclusive write transaction, and a
lock for the projection. A failure of the database is `LedgerUnreachable` in one line: nothing was
recorded then, and earlier records are intact.

The two drivers are used directly: `ratchet status` reads the ledger, and importing SQLAlchemy would
make it 0.2 s slower.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any, Generic, TypeVar

from resources.config.ledger_url import check_url

Item = TypeVar("Item")
WAIT_S = 30.0  # wait for another process that writes
CONNECT_S = 10  # wait for a server to answer
TABLE = """
CREATE TABLE IF NOT EXISTS promotions (
    entry BIGINT PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('install', 'promote', 'rollback', 'refuse')),
    version BIGINT NOT NULL,
    checkpoint TEXT NOT NULL,
    checkpoint_hash TEXT NOT NULL,
    path TEXT NOT NULL,
    predecessor BIGINT NOT NULL,
    decision TEXT NOT NULL,
    run_id TEXT NOT NULL UNIQUE,
    created_at TEXT NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS one_successor ON promotions (predecessor) WHERE kind <> 'refuse';
CREATE TABLE IF NOT EXISTS entry_hashes (entry BIGINT PRIMARY KEY, hash TEXT NOT NULL);
"""


def sqlite_triggers(table: str, same: str, prefix: str = "") -> list[str]:
    """Return the statements that make a table append-only.

    same: condition under which a stored row and NEW exclude each other: `INSERT OR REPLACE` deletes
    without firing a trigger for deletions.
    """
    body = f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END;"
    events = {
        "changed": f"UPDATE ON {table}",
        "deleted": f"DELETE ON {table}",
        "replaced": f"INSERT ON {table} WHEN EXISTS (SELECT 1 FROM {table} WHERE {same})",
    }
    return [
        f"CREATE TRIGGER IF NOT EXISTS {prefix}never_{name} BEFORE {event} {body}"
        for name, event in events.items()
    ]


SQLITE_TRIGGERS = "".join(
    sqlite_triggers(
        "promotions",
        "entry = NEW.entry OR run_id = NEW.run_id OR "
        "(predecessor = NEW.predecessor AND kind <> 'refuse' AND NEW.kind <> 'refuse')",
    )
    + sqlite_triggers("entry_hashes", "entry = NEW.entry", "hash_")
)
POSTGRES_TRIGGERS = """
CREATE OR REPLACE FUNCTION promotions_are_kept() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$;
CREATE OR REPLACE TRIGGER never_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON
promotions EXECUTE FUNCTION promotions_are_kept();
CREATE OR REPLACE TRIGGER hash_never_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON
entry_hashes EXECUTE FUNCTION promotions_are_kept();
"""
WRITING, PROJECTING = 0x7261_7463_0001, 0x7261_7463_0002  # keys of Postgres' advisory locks


class LedgerUnreachable(RuntimeError):
    """The record of promotions cannot be read or written now.

    The message says where it is and what to check.
    """


def database(place: Path | str) -> SqliteFile | PostgresServer:
    """Open a database: a path is SQLite, a URL Postgres. Raises ValueError for another URL."""
    if isinstance(place, Path):
        return SqliteFile(place)
    check_url(place)
    return PostgresServer(place)


class SqliteFile:
    """The ledger in a SQLite file.

    path: created at the first write. Uses a write-ahead log, synced at each commit.
    """

    mark = "?"  # placeholder of a parameter in this driver

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Cursor | None]:
        """Yield a cursor that sees one moment, so that rows and hashes fit while others write; None
        without a table: a writer may have been killed before it created one.
        """
        if not self.path.exists():
            yield None
            return
        with self._named_errors(), self._open() as connection:
            cursor = connection.cursor()
            cursor.execute("BEGIN")
            if has_table(cursor, "promotions"):
                yield cursor
            elif cursor.execute("SELECT 1 FROM sqlite_master").fetchone():
                raise sqlite3.DatabaseError("it has other tables, and no `promotions`")
            else:
                yield None

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Cursor]:
        with self._named_errors():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._open() as connection:
                connection.execute("PRAGMA journal_mode=WAL")
                cursor = connection.cursor()
                with connection:
                    cursor.executescript(f"BEGIN IMMEDIATE;{TABLE}{SQLITE_TRIGGERS}")
                    yield cursor

    def damage(self) -> str:
        """Return the first thing that SQLite finds wrong in the file; "" if there is none."""
        with self.reading() as cursor:
            if cursor is None:
                return ""
            (found,) = cursor.execute("PRAGMA integrity_check(1)").fetchone()
        return "" if found == "ok" else " ".join(found.split())

    @contextmanager
    def sync_lock(self) -> Iterator[None]:
        """Allow one projection at a time; a killed one holds no lock."""
        with self._named_errors():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = (self.path.parent / "mlflow.lock").open("w")
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with closing(
            sqlite3.connect(self.path, timeout=WAIT_S, isolation_level=None)
        ) as connection:
            connection.execute("PRAGMA synchronous=FULL")
            yield connection

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.DatabaseError, OSError) as error:
            if isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError):
                raise
            fix = {
                "database is locked": (
                    f"another process has locked it for more than {WAIT_S:g} s: end that one "
                    f"(`fuser {self.path}` names it)"
                ),
                "database disk image is malformed": "restore it from a backup",
                "file is not a database": "restore it from a backup",
                "it has other tables, and no `promotions`": "restore it from a backup",
                "database or disk is full": "free some space",
            }.get(str(error), "check that this user can write to its folder")
            raise LedgerUnreachable(
                f"the ledger {self.path} cannot be used ({error}), nothing was recorded: {fix}"
            ) from error


class PostgresServer:
    """The ledger on a Postgres server.

    url: without a password, which libpq takes from PGPASSWORD or PGPASSFILE. Each call opens a
    connection: calls are rare.
    """

    mark = "%s"

    def __init__(self, url: str) -> None:
        self.url = url

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """Yield a cursor that sees one moment; None without a table."""
        with self._transaction() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            yield cursor if has_table(cursor, "promotions") else None

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """Queue writers, so that none decides on a champion that another is about to replace.

        The index would refuse the second one anyway.
        """
        with self._transaction() as cursor:
            cursor.execute(
                f"SET LOCAL lock_timeout = '{WAIT_S:g}s'; SET LOCAL synchronous_commit = on"
            )
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", (WRITING,))
            if not has_table(cursor, "entry_hashes"):
                cursor.execute(TABLE + POSTGRES_TRIGGERS)
            yield cursor

    def damage(self) -> str:
        """Return "": the server checks its own files."""
        return ""

    @contextmanager
    def sync_lock(self) -> Iterator[None]:
        """Allow one projection at a time among all machines.

        The server releases the lock when the connection ends, however it ends.
        """
        with self._transaction() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", (PROJECTING,))
            yield

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        """Commit everything at the end, or nothing."""
        try:
            import psycopg2
        except ImportError as error:
            raise LedgerUnreachable(
                f"the ledger {self.url} needs psycopg2: pip install 'psycopg2-binary>=2.9,<3' "
                "(extra `cluster`)"
            ) from error

        try:
            connected = psycopg2.connect(
                self.url, connect_timeout=CONNECT_S, application_name="ratchet"
            )
            with closing(connected) as connection, connection, connection.cursor() as cursor:
                yield cursor
        except (
            psycopg2.OperationalError,
            psycopg2.InterfaceError,
            psycopg2.ProgrammingError,
        ) as error:
            why = " ".join(str(error).split()) or "the connection was lost"
            fix = "check that the server runs, and PGPASSWORD"
            if isinstance(error, psycopg2.errors.LockNotAvailable):
                fix = "another process holds the lock; pg_stat_activity names it"
            raise LedgerUnreachable(
                f"the ledger {self.url} cannot be used ({why}): {fix}, then run the same command; "
                "it records nothing twice"
            ) from error


def rows_of(cursor: Any, table: str = "promotions") -> list[tuple[Any, ...]]:
    """Return all entries as rows, oldest first."""
    cursor.execute(f"SELECT * FROM {table} ORDER BY entry")
    return list(cursor.fetchall())


def chained(rows: Sequence[Sequence[Any]], before: str = "") -> list[str]:
    """Return a sha256 for each row, which covers the row and all rows before it.

    before: hash of the row before the first one.
    """
    hashes = []
    for row in rows:
        text = json.dumps([before, *row], default=str)  # a damaged type can make bytes of a text
        before = hashlib.sha256(text.encode()).hexdigest()
        hashes.append(before)
    return hashes


def recorded_hashes(cursor: Any, hashes: str = "entry_hashes") -> list[str]:
    """Return the hashes as recorded."""
    if not has_table(cursor, hashes):
        return []
    cursor.execute(f"SELECT hash FROM {hashes} ORDER BY entry")
    return [content for (content,) in cursor.fetchall()]


class VerifiedRows(Generic[Item]):
    """The items of an append-only table, whose rows are verified and parsed once.

    A gateway reads a record several times a second: a row that was verified before is compared with
    its copy, which takes a fraction of the time. Safe among threads. parse: makes an item of a row.
    """

    def __init__(self, parse: Callable[[Sequence[Any]], Item]) -> None:
        self.parse = parse
        self._known: tuple[list[tuple[Any, ...]], list[str], list[Item]] = [], [], []

    def items(self, rows: list[tuple[Any, ...]], recorded: list[str]) -> list[Item]:
        """Return the items, oldest first. recorded: the rows' hashes.

        Raises WrongRow for the first row that differs from its hash.
        """
        known, hashes, items = self._known
        if rows[: len(known)] != known:
            known, hashes, items = [], [], []
        new = rows[len(known) :]
        hashes = hashes + chained(new, hashes[-1] if hashes else "")
        pairs = zip_longest(hashes, recorded)
        for number, (computed, stored) in enumerate(pairs, 1):
            if computed != stored:
                raise WrongRow(number)
        items = items + [self.parse(row) for row in new]
        self._known = rows, hashes, items
        return list(items)


class WrongRow(ValueError):
    """A row is not what was recorded. number: 1 for the first."""

    def __init__(self, number: int) -> None:
        super().__init__(f"row {number} is not what was recorded")
        self.number = number


def record_hashes(
    cursor: Any, mark: str, table: str = "promotions", hashes: str = "entry_hashes"
) -> None:
    """Record the hashes of the entries that have none yet. mark: the driver's placeholder."""
    present = len(recorded_hashes(cursor, hashes))
    for number, content in list(enumerate(chained(rows_of(cursor, table)), start=1))[present:]:
        cursor.execute(f"INSERT INTO {hashes} VALUES ({mark}, {mark})", (number, content))


def has_table(cursor: Any, name: str) -> bool:
    """Return whether the database has this table."""
    if isinstance(cursor, sqlite3.Cursor):
        cursor.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,))
        return cursor.fetchone() is not None
    cursor.execute("SELECT to_regclass(%s) IS NOT NULL", (name,))
    return bool(cursor.fetchone()[0])
