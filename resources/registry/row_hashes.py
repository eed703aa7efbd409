"""Hashes of the rows of an append-only table, each over its row and all rows before it.

In: a cursor of a database (ledger_database.py). Out: the verified rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any, Generic, TypeVar

from artifacts.hashing import hash_text
from resources.registry.ledger_database import has_table

Item = TypeVar("Item")


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
        before = hash_text(text)
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
