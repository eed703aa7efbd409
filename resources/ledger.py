"""The truth about what is champion: one append-only record of what the gate decided.

In: decisions, as plain JSON. Out: the champion, the history, a rollback. One SQLite file, synced at each commit; MLflow's aliases are its projection
(resources/registry.py). Each entry that moves the champion names the entry it replaces, and only one may: of two promotions at once one wins.
Light on purpose: `ratchet status` reads it within a second.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

Kind = Literal["install", "promote", "rollback", "refuse"]
WAIT_S = 30.0  # for another process that writes

SCHEMA = """
CREATE TABLE IF NOT EXISTS promotions (
    entry INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('install', 'promote', 'rollback', 'refuse')),
    version INTEGER NOT NULL,
    checkpoint TEXT NOT NULL,
    checkpoint_hash TEXT NOT NULL,
    path TEXT NOT NULL,
    predecessor INTEGER NOT NULL,
    decision TEXT NOT NULL,
    chain TEXT NOT NULL UNIQUE,
    created_at TEXT NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS one_successor ON promotions (predecessor) WHERE kind <> 'refuse';
CREATE TRIGGER IF NOT EXISTS never_changed BEFORE UPDATE ON promotions BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER IF NOT EXISTS never_deleted BEFORE DELETE ON promotions BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
"""


@dataclass(frozen=True)
class Entry:
    """`version` numbers each checkpoint that ever came to the gate, refused ones too; `predecessor` is the champion's entry then, 0 for none."""

    entry: int
    kind: Kind
    version: int
    checkpoint: str
    checkpoint_hash: str
    path: str
    predecessor: int
    decision: dict[str, Any]
    chain: str
    created_at: str


COLUMNS = tuple(column.name for column in fields(Entry))


class Superseded(RuntimeError):
    """The champion that a decision was made against is champion no longer."""


class NothingToRollBack(LookupError):
    """There is no earlier champion."""


class Ledger:
    """path: the SQLite file; made at the first write. Safe among processes; each call is one transaction."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def history(self) -> list[Entry]:
        """All entries, oldest first."""
        if not self.path.exists():
            return []
        with self._open() as connection:
            return _entries(connection)

    def champion(self) -> Entry | None:
        return next(iter(_stack(self.history())[::-1]), None)

    def previous(self) -> Entry | None:
        """Who would be champion after a rollback."""
        stack = _stack(self.history())
        return stack[-2] if len(stack) > 1 else None

    def append(
        self, kind: Kind, *, checkpoint: str, checkpoint_hash: str, path: str, decision: dict[str, Any], chain: str, against: str | None
    ) -> Entry:
        """Records one decision, for ever, and returns its entry.

        against: checkpoint hash of the champion that the decision compares with, from the decision itself; None where there was no champion.
        A chain decides once: asked again for the same checkpoint, this returns what was recorded and changes nothing.
        Raises Superseded where another promotion came between (nothing is recorded: decide again), ValueError where the chain had another checkpoint.
        """
        if kind not in get_args(Kind) or kind == "rollback":
            raise ValueError(f"{kind!r} is no decision to append: install, promote or refuse")
        with self._write() as connection:
            entries = _entries(connection)
            if (told := next((e for e in entries if e.chain == chain), None)) is not None:
                if told.checkpoint_hash != checkpoint_hash:
                    raise ValueError(f"chain {chain} has already put {told.checkpoint} before the gate, one candidate a chain: start a new chain")
                return told
            champion = next(iter(_stack(entries)[::-1]), None)
            if (champion.checkpoint_hash if champion else None) != against:
                compared = next((e for e in entries if e.checkpoint_hash == against), None)
                raise Superseded(f"{_named(champion)} is champion now, {checkpoint} was compared with {_named(compared)}: decide again")
            known = (e.version for e in entries if e.checkpoint_hash == checkpoint_hash)
            version = next(known, max((e.version for e in entries), default=0) + 1)
            return _insert(connection, kind, version, checkpoint, checkpoint_hash, path, champion.entry if champion else 0, decision, chain)

    def rollback(self, chain: str, reason: str = "") -> Entry:
        """Makes the champion before this one champion again; the entry's decision says what was undone and why.

        Idempotent per chain. Raises NothingToRollBack where there was none.
        """
        with self._write() as connection:
            entries = _entries(connection)
            if (told := next((e for e in entries if e.chain == chain), None)) is not None:
                return told
            stack = _stack(entries)
            if len(stack) < 2:
                state = f"{_named(stack[0])} is the first champion" if stack else "there is no champion yet"
                raise NothingToRollBack(f"{state}: nothing lies before it")
            undone, back = stack[-1], stack[-2]
            decision = {"kind": "rollback", "undone": undone.entry, "undone_version": undone.version, "undone_checkpoint": undone.checkpoint}
            decision["reasons"] = [f"{_named(undone)} was taken back, {_named(back)} is champion again.", *([reason] if reason else [])]
            return _insert(connection, "rollback", back.version, back.checkpoint, back.checkpoint_hash, back.path, undone.entry, decision, chain)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self.path, timeout=WAIT_S, isolation_level=None)
        try:
            connection.executescript("PRAGMA synchronous=FULL; PRAGMA busy_timeout=30000;")
            yield connection
        finally:
            connection.close()

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        """One transaction that nobody else writes beside, committed at the end or not at all."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._open() as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.executescript(SCHEMA)
            connection.execute("BEGIN IMMEDIATE")
            with connection:
                yield connection


def _entries(connection: sqlite3.Connection) -> list[Entry]:
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'promotions'").fetchone() is None:
        return []  # killed between making the file and its table
    rows = connection.execute(f"SELECT {', '.join(COLUMNS)} FROM promotions ORDER BY entry").fetchall()
    return [Entry(**dict(zip(COLUMNS, row, strict=True)) | {"decision": json.loads(row[7])}) for row in rows]


def _stack(entries: list[Entry]) -> list[Entry]:
    """Champions to come back to, the present one last: a promotion goes on top; a rollback takes the top off and stands for the one below."""
    stack: list[Entry] = []
    for entry in entries:
        if entry.kind == "rollback":
            stack[-2:] = [entry]
        elif entry.kind != "refuse":
            stack.append(entry)
    return stack


def _insert(
    connection: sqlite3.Connection,
    kind: Kind,
    version: int,
    checkpoint: str,
    checkpoint_hash: str,
    path: str,
    predecessor: int,
    decision: dict[str, Any],
    chain: str,
) -> Entry:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    row = (kind, version, checkpoint, checkpoint_hash, path, predecessor, json.dumps(decision, sort_keys=True), chain, now)
    cursor = connection.execute(f"INSERT INTO promotions ({', '.join(COLUMNS[1:])}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    assert cursor.lastrowid is not None
    return Entry(cursor.lastrowid, kind, version, checkpoint, checkpoint_hash, path, predecessor, decision, chain, now)


def _named(entry: Entry | None) -> str:
    return f"version {entry.version} ({entry.checkpoint})" if entry else "nobody"
