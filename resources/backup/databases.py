"""Copies of databases that others write to at the same time: SQLite files, and Postgres."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from artifacts.integrity import RESTORE, CorruptArtifact
from resources.config.profile import Profile
from resources.home import NotReady

MAGIC = b"SQLite format 3\0"
COMPANIONS = ("-wal", "-shm", "-journal")  # of a SQLite file, by the ends of their names
WAIT_S = 30.0
PASSWORD = "DAGSTER_POSTGRES_PASSWORD"  # of Dagster's own database
LOADED = "ratchet_restored"  # a table: which dump a restore in progress has loaded
TABLES = (
    "SELECT tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
)


def is_sqlite(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def is_companion(path: Path) -> bool:
    """Whether a file belongs to a SQLite file beside it, whose copy contains it."""
    ends = [end for end in COMPANIONS if path.name.endswith(end)]
    bases = [path.with_name(path.name.removesuffix(end)) for end in ends]
    return any(base.is_file() and is_sqlite(base) for base in bases)


def copy_sqlite(path: Path, target: Path) -> None:
    """Copy a database as it is at one moment. Raises CorruptArtifact."""
    try:
        with (
            closing(sqlite3.connect(path, timeout=WAIT_S)) as source,
            closing(sqlite3.connect(target)) as copy,
        ):
            source.backup(copy)
    except sqlite3.DatabaseError as error:
        raise _damaged(path, str(error)) from error
    shutil.copymode(path, target)


def check_sqlite(copy: Path, of: Path) -> None:
    """Raise CorruptArtifact, which names the database of the copy, for a damaged one."""
    try:
        with closing(sqlite3.connect(copy)) as connection:
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        found = str(error)
    if found != "ok":
        raise _damaged(of, found)


def _damaged(path: Path, why: str) -> CorruptArtifact:
    return CorruptArtifact(f"{path}: is damaged ({' '.join(why.split())}): {RESTORE}")


@dataclass(frozen=True)
class DatabaseServer:
    """A database of a Postgres server. password: the variable that holds it."""

    url: str
    password: str

    @contextmanager
    def moment(self) -> Iterator[str]:
        """Yield a name of the database as it is now, for a dump before the end. Raises NotReady."""
        import psycopg2

        try:
            connected = psycopg2.connect(self.url, password=os.environ.get(self.password))
        except psycopg2.OperationalError as error:
            why = " ".join(str(error).split())
            raise NotReady(f"{self.url} cannot be read ({why}): see its password") from error
        with closing(connected) as connection, connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("SELECT pg_export_snapshot()")
            yield str(cursor.fetchone()[0])

    def dump(self, target: Path, moment: str) -> None:
        """Write the database as it was at this moment. Raises NotReady."""
        how = ("--format=custom", f"--snapshot={moment}", f"--file={target}")
        self._call("pg_dump", *how, f"--dbname={self.url}")

    def has(self, content: str) -> bool:
        """Return whether a restore that did not end has loaded the dump with this hash. Raises
        NotReady if the database has other tables.
        """
        tables = self._query(TABLES).split()
        if LOADED in tables and self._query(f"SELECT content FROM public.{LOADED}") == content:
            return True
        if tables:
            raise NotReady(
                f"{self.url} has tables already: name an empty database in the profile, or drop "
                "and create this one"
            )
        return False

    def load(self, dump: Path, content: str) -> None:
        """Fill the empty database from a dump: completely or not at all. Raises NotReady.

        content: the hash of the dump, which the database has until `finish`.
        """
        script = dump.with_name(f"{dump.name}.sql")
        how = ("--no-owner", "--no-privileges", f"--file={script}")
        self._call("pg_restore", *how, str(dump))
        mark = (
            f"CREATE TABLE IF NOT EXISTS public.{LOADED} (content TEXT); "
            f"DELETE FROM public.{LOADED}; INSERT INTO public.{LOADED} VALUES ('{content}')"
        )
        once = ("--single-transaction", "--set=ON_ERROR_STOP=1", "--output=/dev/null")
        self._call("psql", "--no-psqlrc", *once, f"--file={script}", "-c", mark, self.url)

    def finish(self) -> None:
        """End a restore. Raises NotReady."""
        self._query(f"DROP TABLE IF EXISTS public.{LOADED}")

    def _query(self, sql: str) -> str:
        return self._call("psql", "--no-psqlrc", "--quiet", "-tAc", sql, self.url).strip()

    def _call(self, program: str, *arguments: str) -> str:
        environment = dict(os.environ)
        if self.password in environment:
            environment["PGPASSWORD"] = environment[self.password]
        try:
            ended = subprocess.run(
                [program, "--no-password", *arguments],
                env=environment, capture_output=True, text=True, check=False,
            )  # fmt: skip
        except FileNotFoundError as error:
            raise NotReady(
                f"{program} is missing, which a database on Postgres needs: install "
                "postgresql-client, of the server's version or newer"
            ) from error
        if ended.returncode:
            why = " ".join(ended.stderr.split())[-300:]
            raise NotReady(f"{program} failed on {self.url} ({why}): see its password, and retry")
        return ended.stdout


def servers(profile: Profile) -> dict[str, DatabaseServer]:
    """Return the databases that the profile names on servers, by what they are for; a database
    with both the ledger and Dagster's records is named once.
    """
    named = {}
    if postgres := profile.orchestration.postgres:
        place = f"{postgres.hostname}:{postgres.port}/{postgres.database}"
        named[place] = (
            "dagster",
            DatabaseServer(f"postgresql://{postgres.username}@{place}", PASSWORD),
        )
    if url := profile.storage.ledger:
        parts = urlsplit(url)
        place = f"{parts.hostname}:{parts.port or 5432}/{parts.path.strip('/')}"
        named[place] = "ledger", DatabaseServer(url, "PGPASSWORD")
    return dict(named.values())
