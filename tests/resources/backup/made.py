"""Homes that are backed up in tests, and what two homes have in common."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from artifacts.folder import Folder
from artifacts.hashing import hash_file
from resources.backup.back_up import BackupSummary, back_up
from resources.backup.restore import restore
from resources.home import Home
from resources.settings import Settings
from tests.finished_home import fill_ledger, write_home

CHANGES = ("mlflow.db", "dagster/history/runs.db")


def decided_home(path: Path) -> Settings:
    """Return the settings of a home with a champion and a refused challenger, and databases of
    other programs.
    """
    write_home(path)
    fill_ledger(Home(path))
    for name in CHANGES:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path / name)) as connection, connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("CREATE TABLE runs (name TEXT)")
            connection.execute("INSERT INTO runs VALUES ('one')")
    return Settings(Home(path), "small")


def backed_up(settings: Settings, url: str, keep: int = 30) -> BackupSummary:
    return back_up(settings, Folder(url), keep)


def restored(url: str, path: Path, *, root: str = "", id: str = "") -> Settings:
    """Restore into a folder; return the settings of that home."""
    restore(Folder(url), Home(path), root, {}, id)
    return Settings(Home(path), "small", (f"storage.root={root}",) if root else ())


def contents(home: Path) -> dict[str, str]:
    """Return the hash of each file by name; hidden files are locks and caches."""
    paths = {path.relative_to(home): path for path in home.rglob("*") if path.is_file()}
    return {
        name.as_posix(): hash_file(path)
        for name, path in paths.items()
        if not any(part[0] == "." for part in name.parts)
    }
