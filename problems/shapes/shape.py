"""What a shape of published rows defines: how to recognize a row, and how to read it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from problems.reading.source import Record, Row


@dataclass(frozen=True)
class RowShape:
    """A shape of rows. `read(row, where)` raises ProblemError that begins with `where`.

    keys: the row has all of them. fits: decides where several shapes have the same keys.
    used: the keys that `read` uses up; all others are kept in `extra`.
    licence: of the dataset; None if several datasets have this shape.
    """

    name: str
    about: str
    keys: tuple[str, ...]
    read: Callable[[Row, str], Record]
    used: tuple[str, ...]
    licence: str | None = None
    fits: Callable[[Row], bool] = field(default=lambda row: True)

    def matches(self, row: Row) -> bool:
        return all(key in row for key in self.keys) and self.fits(row)
