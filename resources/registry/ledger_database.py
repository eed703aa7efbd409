"""The databases: SQLite files of a home, or tables of a Postgres server for several machines.

Both have the same tables and the same guarantees.
In: a path or a `postgresql://` URL, and a schema. Out: a read transaction, an exclusive write
transaction, and a lock for the projection. A failure of the database is `LedgerUnreachable` in one
line: nothing was recorded then, and earlier records are intact.

The two drivers are used directly: `ratchet status` reads the ledger, and importing SQLAlchemy would
make it 0.2 s slower.
"""

from __future__ import annotations

import fcntl
import math
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from artifacts.integrity import RESTORE
from resources.config.ledger_url import check_url

WAIT_S = 30.0  # wait for another process that writes
CONNECT_S = 10.0  # wait for a server to answer
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
PROJECTING = 0x7261_7463_0002  # key of one of Postgres' advisory locks


@dataclass(frozen=True)
class Schema:
    """Tables that are made and written together.

    title: in messages. table: the one that readers need; last: the one that is made last. sqlite,
    postgres: statements that make them. lock: key of the advisory lock of their writers.
    alone: whether a SQLite file without `table` may hold no other table.
    """

    title: str
    table: str
    last: str
    sqlite: str
    postgres: str
    lock: int
    alone: bool = False


LEDGER = Schema(
    title="the ledger",
    table="promotions",
    last="entry_hashes",
    sqlite=TABLE + SQLITE_TRIGGERS,
    postgres=TABLE + POSTGRES_TRIGGERS,
    lock=0x7261_7463_0001,
    alone=True,
)


class LedgerUnreachable(RuntimeError):
    """The ledger, or another database of records, cannot be read or written now.

    The message says where it is and what to check.
    """


def database(place: Path | str, schema: Schema = LEDGER) -> SqliteFile | PostgresServer:
    """Open a database: a path is SQLite, a URL Postgres. Raises ValueError for another URL."""
    if isinstance(place, Path):
        return SqliteFile(place, schema)
    check_url(place)
    return PostgresServer(place, schema)


_until: ContextVar[float] = ContextVar("until", default=math.inf)  # on the monotonic clock


@contextmanager
def answered_within(seconds: float) -> Iterator[None]:
    """Wait this long for servers in all calls of the block together, not `CONNECT_S` in each."""
    token = _until.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _until.reset(token)


class SqliteFile:
    """Tables in a SQLite file.

    path: created at the first write. Uses a write-ahead log, synced at each commit.
    """

    mark = "?"  # placeholder of a parameter in this driver
    clock = "(julianday('now') - 2440587.5) * 86400"  # seconds since 1970

    def __init__(self, path: Path, schema: Schema) -> None:
        self.path, self.schema = path, schema

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
            if has_table(cursor, self.schema.table):
                yield cursor
            elif self.schema.alone and cursor.execute("SELECT 1 FROM sqlite_master").fetchone():
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
                    cursor.executescript(f"BEGIN IMMEDIATE;{self.schema.sqlite}")
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
                "database disk image is malformed": RESTORE,
                "file is not a database": RESTORE,
                "it has other tables, and no `promotions`": RESTORE,
                "database or disk is full": "free some space",
            }.get(str(error), "check that this user can write to its folder")
            raise LedgerUnreachable(
                f"{self.schema.title} {self.path} cannot be used ({error}), nothing was recorded: "
                f"{fix}"
            ) from error


class PostgresServer:
    """Tables on a Postgres server.

    url: without a password, which libpq takes from PGPASSWORD or PGPASSFILE. Each call opens a
    connection: calls are rare.
    """

    mark = "%s"
    clock = "EXTRACT(EPOCH FROM clock_timestamp())"

    def __init__(self, url: str, schema: Schema) -> None:
        self.url, self.schema = url, schema

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """Yield a cursor that sees one moment; None without a table."""
        with self._transaction() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            yield cursor if has_table(cursor, self.schema.table) else None

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """Queue writers, so that none decides on a champion that another is about to replace.

        The index would refuse the second one anyway.
        """
        with self._transaction() as cursor:
            cursor.execute(
                f"SET LOCAL lock_timeout = '{WAIT_S:g}s'; SET LOCAL synchronous_commit = on"
            )
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", (self.schema.lock,))
            if not has_table(cursor, self.schema.last):
                cursor.execute(self.schema.postgres)
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
                f"{self.schema.title} {self.url} needs psycopg2: pip install "
                "'psycopg2-binary>=2.9,<3' (extra `cluster`)"
            ) from error

        left_s = min(CONNECT_S, _until.get() - time.monotonic())
        try:
            if left_s <= 0:
                raise psycopg2.OperationalError("it did not answer in time")
            connected = psycopg2.connect(
                self.url, connect_timeout=math.ceil(left_s), application_name="ratchet"
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
                f"{self.schema.title} {self.url} cannot be used ({why}): {fix}, then run the same "
                "command; it records nothing twice"
            ) from error


def has_table(cursor: Any, name: str) -> bool:
    """Return whether the database has this table."""
    if isinstance(cursor, sqlite3.Cursor):
        cursor.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,))
        return cursor.fetchone() is not None
    cursor.execute("SELECT to_regclass(%s) IS NOT NULL", (name,))
    return bool(cursor.fetchone()[0])
