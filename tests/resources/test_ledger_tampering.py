"""The ledger refuses changes, and notices those that are made around its triggers."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import pytest

from resources.registry.ledger import COLUMNS, Ledger, LedgerChanged
from resources.registry.row_hashes import VerifiedRows, chained
from tests.resources.ledger_entries import put


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE promotions SET kind = 'refuse'",
        "DELETE FROM promotions",
        "INSERT INTO promotions SELECT * FROM promotions WHERE true "
        "ON CONFLICT (entry) DO UPDATE SET kind = 'refuse'",
        "UPDATE entry_hashes SET hash = ''",
        "DELETE FROM entry_hashes",
    ],
)
def test_entries_cannot_be_changed_or_deleted(ledger: Ledger, statement: str) -> None:
    put(ledger, "a", "install")
    with pytest.raises(Exception, match="append-only"), ledger._database.writing() as cursor:
        cursor.execute(statement)
    assert [entry.kind for entry in ledger.history()] == ["install"]


def unguarded(ledger: Ledger, *statements: str) -> None:
    """Run statements as somebody who drops the triggers first."""
    with ledger._database.writing() as cursor:
        for table, prefix in (("promotions", ""), ("entry_hashes", "hash_")):
            for trigger in ("never_changed", "never_deleted"):
                on = "" if isinstance(cursor, sqlite3.Cursor) else f" ON {table}"
                cursor.execute(f"DROP TRIGGER IF EXISTS {prefix}{trigger}{on}")
        for statement in statements:
            cursor.execute(statement)


@pytest.mark.parametrize("column", COLUMNS)
def test_an_edited_column_is_noticed_by_its_entry(ledger: Ledger, column: str) -> None:
    put(ledger, "a", "install")
    put(ledger, "b", "refuse")
    value = "'promote'" if column == "kind" else "7"
    unguarded(ledger, f"UPDATE promotions SET {column} = {value} WHERE entry = 2")
    for read in (ledger.history, ledger.champion, ledger.head, lambda: put(ledger, "c")):
        with pytest.raises(LedgerChanged, match="entry 2"):
            read()


def test_an_entry_that_was_read_before_is_still_compared(ledger: Ledger) -> None:
    put(ledger, "a", "install")
    put(ledger, "b")
    history = ledger.history()
    unguarded(ledger, "UPDATE promotions SET checkpoint = 'x' WHERE entry = 1")
    with pytest.raises(LedgerChanged, match="entry 1"):
        ledger.history()
    unguarded(ledger, "UPDATE promotions SET checkpoint = 'a' WHERE entry = 1")
    assert ledger.history() == history


def test_a_row_is_parsed_once() -> None:
    parsed: list[Sequence[Any]] = []
    verified = VerifiedRows(parsed.append)
    rows: list[tuple[Any, ...]] = [(1, "a"), (2, "b")]
    for count in (1, 2, 2):
        verified.items(rows[:count], chained(rows[:count]))
    assert parsed == rows


def test_removed_hashes_are_noticed(ledger: Ledger) -> None:
    put(ledger, "a", "install")
    unguarded(ledger, "DELETE FROM entry_hashes")
    with pytest.raises(LedgerChanged, match="entry 1"):
        ledger.history()


def test_a_removed_last_entry_contradicts_its_run_record(ledger: Ledger) -> None:
    put(ledger, "a", "install")
    put(ledger, "b", "refuse")
    decided = {"chain-a": "install", "chain-b": "refuse"}
    ledger.compare(decided)
    unguarded(
        ledger,
        "DELETE FROM promotions WHERE entry = 2",
        "DELETE FROM entry_hashes WHERE entry = 2",
    )
    with pytest.raises(LedgerChanged, match="chain-b"):
        ledger.compare(decided)


def test_entries_without_their_hashes_are_refused(ledger: Ledger) -> None:
    put(ledger, "a", "install")
    with ledger._database.writing() as cursor:
        cursor.execute("DROP TABLE entry_hashes")
    with pytest.raises(LedgerChanged, match="entry 1"):
        ledger.history()
    with pytest.raises(LedgerChanged, match="entry 1"):
        put(ledger, "b")
