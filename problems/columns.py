"""The columns of a problem: what each may hold, and the error that names a wrong one."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from keyword import iskeyword
from typing import Any, NamedTuple

from sandbox.limits import Limits
from sandbox.protocol import COMPARES, Invalid, Job
from sandbox.reading import means, shown
from sandbox.styles import STYLES


class ProblemError(ValueError):
    """A problem that cannot be read.

    where: its location (file, row); reason: what is wrong, with the column; fix: how to fix it.
    """

    def __init__(self, reason: str, fix: str, where: str = "") -> None:
        super().__init__(f"{where}: {reason}: {fix}" if where else f"{reason}: {fix}")
        self.reason, self.fix, self.where = reason, fix, where


SPLITS = ("demonstrations", "train", "validation", "heldout")
# the keys of a job's problem, and the columns that hold them
JOB_COLUMNS = {
    name: name
    for name in (
        "style", "tests", "entry_point", "limits", "tolerance", "compare", "checker",
        "visible_tests",
    )
} | {"prompt": "starter_code"}  # fmt: skip
LIST_COLUMNS = ("solutions", "tags")  # of texts; a source may give one plain text
INT64_END = 2**63  # exclusive maximum of an int64
MAX_ID = 300  # characters


class Column(NamedTuple):
    expected: str  # described in words, for the error
    fits: Callable[[Any], bool]
    required: bool = False


def _text(value: Any) -> bool:
    """Return whether it is Unicode text; half a surrogate pair is not, as UTF-8 cannot hold it."""
    return isinstance(value, str) and (
        value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)
    )


def _number(value: Any) -> bool:
    """Return whether it is finite and fits a table column: an infinite limit decides nothing."""
    return (
        isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < INT64_END
    )


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < INT64_END


def _texts(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(map(_text, value))


def _objects(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(item, Mapping) for item in value)


def _callable(name: str) -> bool:
    return all(part.isidentifier() and not iskeyword(part) for part in name.split("().", 1))


_UP = re.compile(r"(?:^|[/\\])\.\.(?:$|[/\\])")  # to a folder above


def _identifies(text: str) -> bool:
    """Return whether a text can be told from others wherever it is printed or names a file."""
    plain = text.isprintable() and unicodedata.is_normalized("NFC", text)
    return plain and text == text.strip() and 0 < len(text) <= MAX_ID and not _UP.search(text)


COLUMNS: dict[str, Column] = {
    "problem_id": Column(
        f"printable text of at most {MAX_ID} characters, in Unicode's composed form (NFC), and no "
        "path with ..",
        lambda v: _text(v) and _identifies(v),
        required=True,
    ),
    "source": Column("text, not empty", lambda v: _text(v) and bool(v), required=True),
    "statement": Column(
        "Unicode text, not empty", lambda v: _text(v) and bool(v.strip()), required=True
    ),
    "style": Column("one of " + ", ".join(STYLES), lambda v: v in STYLES, required=True),
    "tests": Column(
        "a list of objects, at least one", lambda v: _objects(v) and len(v) > 0, required=True
    ),
    "entry_point": Column(
        "the name of a function, or Class().method, or null",
        lambda v: v is None or (_text(v) and _callable(v)),
    ),
    "starter_code": Column("text", _text),
    "solutions": Column("a list of texts", _texts),
    "visible_tests": Column("a whole number >= 0", _count),
    "limits": Column("an object", lambda v: isinstance(v, (Mapping, Limits))),
    "tolerance": Column("a number >= 0, or null", lambda v: v is None or (_number(v) and v >= 0)),
    "tags": Column("a list of texts", _texts),
    "split": Column(
        (
            "train, or validation (chooses checkpoints), heldout (gates, never trained on) or "
            "demonstrations"
        ),
        lambda v: v in SPLITS,
    ),
    "licence": Column("text", _text),
    "gated": Column("true or false", lambda v: isinstance(v, bool)),
    "extra": Column("an object", lambda v: isinstance(v, Mapping)),
    "compare": Column("one of " + ", ".join(COMPARES), lambda v: v in COMPARES),
    "checker": Column("text, or null", lambda v: v is None or _text(v)),
}


def check_columns(record: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the record's columns that the schema has, each checked for its type.

    Raises ProblemError naming the first column that is missing or wrong.
    """
    for name, column in COLUMNS.items():
        if name not in record:
            if column.required:
                suggestion = next(
                    (
                        f": there is {key!r}, did you mean {name}?"
                        for key in record
                        if key not in COLUMNS and means(key, name)
                    ),
                    "",
                )
                raise ProblemError(
                    f"column {name} is missing{suggestion}", f"add it: {column.expected}", where
                )
        elif not column.fits(record[name]):
            raise ProblemError(
                f"column {name} is {shown(record[name])}", f"expected {column.expected}", where
            )
    _check_tests(record, where)
    return {name: record[name] for name in COLUMNS if name in record}


def _check_tests(record: Mapping[str, Any], where: str) -> None:
    """Raise ProblemError unless a job could be made of the record."""
    problem = {name: record.get(column) for name, column in JOB_COLUMNS.items()}
    try:
        Job.read({"id": "", "source": "", "problem": problem})
    except Invalid as fault:
        column, _, rest = fault.key.partition(".")
        named = f" with key {rest!r}" if rest else ""
        reason = f"column {column}{named} {fault.reason}"
        raise ProblemError(reason, fault.fix, where) from None
