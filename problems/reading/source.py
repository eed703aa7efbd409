"""What a source of problems defines: where its rows are, and how one becomes a problem."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from artifacts.parsing import parse
from problems.columns import ProblemError
from problems.schema import Problem
from sandbox.reading import shown

Row = Mapping[str, Any]
Read = tuple[str, Row | ProblemError]  # the row's location, and the row or the error
Record = dict[str, Any]  # a row in the columns of the schema; some may be absent
SPLIT = "$split"  # key under which a reader stores the split of a row


@dataclass(frozen=True)
class Rejected:
    """A row that did not become a problem: its location, the reason, and the fix."""

    row: str
    reason: str
    fix: str


@dataclass(frozen=True)
class LoadedRows:
    """The problems of a source, and its rows that did not become one.

    Rows with further samples of the same problem are one problem.
    """

    source: str
    problems: list[Problem]
    rejected: list[Rejected] = field(default_factory=list)


@dataclass(frozen=True)
class Source:
    """A source. `convert(row, where)` returns the problem.

    It raises ProblemError that begins with `where`.
    """

    name: str
    about: str
    convert: Callable[[Row, str], Problem]
    hub_id: str | None = None  # on huggingface.co
    hub_config: str | None = None
    # names to look for if the path is a folder; the first that exists is read
    files: tuple[str, ...] = ()
    all_files: bool = False  # read all of `files` that exist
    hub_split: str | None = None  # the only split that is read, if the source is one split
    # split and file pattern, if the repository also has a loading script
    hub_files: tuple[tuple[str, str], ...] = ()
    # `convert` finds the split at SPLIT: the hub's, else from the file's name; None if neither says
    by_split: bool = False
    generate: Callable[[], list[Problem]] | None = None  # for a source that needs no rows
    fits: Callable[[Row], bool] | None = None  # whether a row is one of this source's, by its keys


def has(row: Row, *keys: str) -> bool:
    return all(key in row for key in keys)


def text(row: Row, key: str, where: str) -> str:
    """Return the text under `key`, with \\n line ends. Raises ProblemError naming the key."""
    if not isinstance(value := _required(row, key, where), str):
        raise ProblemError(f"key {key!r} is {shown(value)}", "expected text", where)
    return value.replace("\r\n", "\n")


def texts(row: Row, key: str, where: str) -> list[str]:
    """Return the list of texts under `key`. Raises ProblemError naming the key."""
    value = _required(row, key, where)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ProblemError(f"key {key!r} is {shown(value)}", "expected a list of texts", where)
    return [item.replace("\r\n", "\n") for item in value]


def python(source: str, what: str, where: str, fix: str = "fix the row") -> ast.Module:
    """Return the tree of a source. Raises ProblemError for a text that is not Python."""
    try:
        return parse(source)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise ProblemError(f"{what} is no Python ({error})", fix, where) from error


def number(row: Row, key: str, where: str) -> int:
    """Return the task number under `key`: 11, or "Mbpp/11". Raises ProblemError naming the key."""
    value = _required(row, key, where)
    tail = str(value).rsplit("/", 1)[-1]
    if isinstance(value, bool) or not tail.isdecimal():
        raise ProblemError(f"key {key!r} is {shown(value)}", "expected a task number", where)
    return int(tail)


def _required(row: Row, key: str, where: str) -> Any:
    if key not in row:
        raise ProblemError(
            f"key {key!r} is missing (there are: {', '.join(sorted(map(str, row)))[:100]})",
            "is this the right file for this source?",
            where,
        )
    return row[key]
