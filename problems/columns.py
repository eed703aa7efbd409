"""The columns of a problem: what each may hold, and the error that names a wrong one."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from keyword import iskeyword
from typing import Any, NamedTuple

from sandbox.protocol import COMPARES, Limits


class ProblemError(ValueError):
    """A problem that cannot be read.

    where: its location (file, row); reason: what is wrong, with the column; fix: how to fix it.
    """

    def __init__(self, reason: str, fix: str, where: str = "") -> None:
        super().__init__(f"{where}: {reason}: {fix}" if where else f"{reason}: {fix}")
        self.reason, self.fix, self.where = reason, fix, where


STYLES = ("call", "assert", "stdio", "unittest")
ANY_COMPARE = sorted({compare for compares in COMPARES.values() for compare in compares})
SPLITS = ("demonstrations", "train", "validation", "heldout")
TEST_KEYS = {
    "call": {"args", "kwargs", "expected"},
    "stdio": {"stdin", "stdout"},
    "assert": {"source"},
    "unittest": {"source"},
}
NEEDED_KEYS = {
    "call": {"expected"},
    "stdio": {"stdin", "stdout"},
    "assert": {"source"},
    "unittest": {"source"},
}
LIMIT_KEYS = tuple(field.name for field in fields(Limits))
OTHER_NAMES = {  # names that other datasets use and that do not look like ours
    "statement": ("prompt", "question", "description", "instruction", "problem"),
    "solutions": ("code", "answer", "canonical_solution"),
    "args": ("input", "inputs"),
    "stdin": ("input", "inputs"),
    "expected": ("output", "outputs", "result"),
    "stdout": ("output", "outputs", "expected"),
}
INT64_END = 2**63  # exclusive maximum of an int64
TOTALS = tuple(key for key in LIMIT_KEYS if key.startswith("total_"))  # may be null: no limit


WORDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "a truth value"),
    (str, "a text"),
    ((int, float), "a number"),
    ((list, tuple), "a list"),
    (Mapping, "an object"),
    (type(None), ""),
)


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


def _limits(value: Any) -> bool:
    if not isinstance(value, Mapping) or not set(value) <= set(LIMIT_KEYS):
        return False
    values = [(key, v) for key, v in value.items() if v is not None or key not in TOTALS]
    return all((_number(v) if key.endswith("_s") else _count(v)) and v > 0 for key, v in values)


def _callable(name: str) -> bool:
    return all(part.isidentifier() and not iskeyword(part) for part in name.split("().", 1))


COLUMNS: dict[str, Column] = {
    "problem_id": Column("text, not empty", lambda v: _text(v) and bool(v.strip()), required=True),
    "source": Column("text, not empty", lambda v: _text(v) and bool(v), required=True),
    "statement": Column("text, not empty", lambda v: _text(v) and bool(v.strip()), required=True),
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
    "limits": Column("an object of numbers > 0 with keys of " + ", ".join(LIMIT_KEYS), _limits),
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
    "compare": Column("one of " + ", ".join(ANY_COMPARE), lambda v: v in ANY_COMPARE),
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
    style, tests = record["style"], record["tests"]
    if style != "stdio" and record.get("entry_point") is None:
        raise ProblemError(
            f"column entry_point is missing, and tests of style {style} need it",
            "name the function that the tests call",
            where,
        )
    compare, checker = record.get("compare", "exact"), record.get("checker")
    if compare not in COMPARES[style] or (checker is not None and style not in ("call", "stdio")):
        raise ProblemError(
            f"column compare or checker does not fit style {style}",
            f"it compares {' or '.join(COMPARES[style])}",
            where,
        )
    fix = f"a test of style {style} has the keys {', '.join(sorted(TEST_KEYS[style]))}"
    for number, test in enumerate(tests):
        if missing := sorted(NEEDED_KEYS[style] - set(test)):
            suggestion = next(
                (
                    f": it has {key!r}, did you mean {missing[0]}?"
                    for key in test
                    if means(key, missing[0])
                ),
                "",
            )
            raise ProblemError(
                f"column tests: test {number} lacks {missing[0]!r}{suggestion}", fix, where
            )
        if unknown := sorted(map(str, set(test) - TEST_KEYS[style])):
            raise ProblemError(
                f"column tests: test {number} has an unknown key {unknown[0]!r}", fix, where
            )
        for key, value in test.items():
            if not _fits_test(style, key, value):
                expected = {"args": "a list", "kwargs": "an object with text keys"}.get(key, "text")
                raise ProblemError(
                    f"column tests: test {number}, key {key!r} is {shown(value)}",
                    f"expected {expected}",
                    where,
                )
    if record.get("visible_tests", 0) > len(tests):
        raise ProblemError(
            f"column visible_tests is {record['visible_tests']} of {len(tests)} tests",
            "show at most as many as there are",
            where,
        )


def _fits_test(style: str, key: str, value: Any) -> bool:
    if style != "call":
        return isinstance(value, str)
    if key == "args":
        return isinstance(value, (list, tuple))
    return key == "expected" or (
        isinstance(value, dict) and all(isinstance(name, str) for name in value)
    )


def means(key: Any, name: str) -> bool:
    """Return whether an unknown key is probably another spelling of this name."""
    written = str(key).lower()
    return written in OTHER_NAMES.get(name, ()) or bool(
        difflib.get_close_matches(written, [name], 1, 0.8)
    )


def near(name: str, known: Iterable[str]) -> str:
    """Return a suggestion for an unknown name; empty if no known name is close."""
    matches = difflib.get_close_matches(name, list(known), 1)
    return f", did you mean {matches[0]!r}?" if matches else ""


def shown(value: Any) -> str:
    """Describe a wrong value in JSON's terms, truncated: `a list [1, 2]`."""
    written = json.dumps(value, ensure_ascii=False, skipkeys=True, default=repr)
    kind = next((word for kinds, word in WORDS if isinstance(value, kinds)), type(value).__name__)
    # Half a surrogate pair cannot be printed.
    return f"{kind} {written}".strip()[:120].encode("utf-8", "backslashreplace").decode()
