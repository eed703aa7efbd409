"""What a source of problems is: where its rows lie, and how one row becomes a problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from problems.columns import ProblemError, shown
from problems.schema import Problem

Row = Mapping[str, Any]
SPLIT = "$split"  # where a reader puts the split that a row was read from


@dataclass(frozen=True)
class Rejected:
    """A row that became no problem: where it lies, why, and what would mend it."""

    row: str
    reason: str
    mend: str


@dataclass(frozen=True)
class Loaded:
    """What a source gave: every row is in one of the two lists."""

    source: str
    problems: list[Problem]
    rejected: list[Rejected] = field(default_factory=list)

    @property
    def rows(self) -> int:
        return len(self.problems) + len(self.rejected)


@dataclass(frozen=True)
class Source:
    """`convert(row, where)` gives the problem, or raises ProblemError that begins with `where`."""

    name: str
    about: str
    convert: Callable[[Row, str], Problem]
    hub_id: str | None = None  # on huggingface.co
    hub_config: str | None = None
    files: tuple[
        str, ...
    ] = ()  # names looked for when the path is a folder; the first that exists is read
    all_files: bool = False  # all of `files` that exist are read
    hub_split: str | None = None  # the one split that is read, where a source is only that
    hub_files: tuple[
        tuple[str, str], ...
    ] = ()  # split and pattern of its files, where the repository has a loading script besides
    by_split: bool = False  # `convert` finds the split at SPLIT: the hub's, else what the file's name begins with; None where neither says
    generate: Callable[[], list[Problem]] | None = None  # a source that needs no rows


def text(row: Row, key: str, where: str) -> str:
    """The text under `key`, with \\n line ends. Raises ProblemError naming the key."""
    if not isinstance(value := _need(row, key, where), str):
        raise ProblemError(f"key {key!r} is {shown(value)}", "expected text", where)
    return value.replace("\r\n", "\n")


def texts(row: Row, key: str, where: str) -> list[str]:
    """The list of texts under `key`. Raises ProblemError naming the key."""
    value = _need(row, key, where)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ProblemError(f"key {key!r} is {shown(value)}", "expected a list of texts", where)
    return [item.replace("\r\n", "\n") for item in value]


def number(row: Row, key: str, where: str) -> int:
    """The task number under `key`: 11, or "Mbpp/11". Raises ProblemError naming the key."""
    value = _need(row, key, where)
    tail = str(value).rsplit("/", 1)[-1]
    if isinstance(value, bool) or not tail.isdecimal():
        raise ProblemError(f"key {key!r} is {shown(value)}", "expected a task number", where)
    return int(tail)


def _need(row: Row, key: str, where: str) -> Any:
    if key not in row:
        raise ProblemError(
            f"key {key!r} is missing (there are: {', '.join(sorted(map(str, row)))[:100]})",
            "is this the right file for this source?",
            where,
        )
    return row[key]
