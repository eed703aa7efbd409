"""Any table of problems: its columns are given the schema's names, and what stands in them is read in the forms that datasets have.

`columns` names the row's own column for one of ours (`statement` <- `prompt`); a dot goes into an object (`reward_model.ground_truth`). `constants`
gives a column one value in all rows. A column that neither mentions is ours where it bears our name, and else kept in `extra`.

- `tests`: a list of our tests, JSON text of one, a list of `assert` lines or one text of Python, objects with `input` and `output`, or an object with
  lists `inputs` and `outputs` (and `fn_name`), as APPS has it.
- `solutions`, `tags`: a list of texts, JSON text of one, or one text.
- `problem_id`: made of the statement where there is none. `entry_point`: found in the first solution where the tests are `assert` lines.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from problems.columns import COLUMNS, ProblemError, near
from problems.schema import Problem
from problems.sources.apps import tests_of
from problems.sources.mbpp import called, check, used
from problems.sources.own import own
from problems.sources.place import Place
from problems.sources.source import Row, Source

LISTS = ("solutions", "tags")
OBJECTS = ("limits", "extra")


def mapped(name: str, place: Place) -> Source:
    """A source of that name over rows of that place."""
    check_names(place)
    convert_own = own(name).convert

    def convert(row: Row, where: str) -> Problem:
        return convert_own(record_of(row, place, where), where)

    return Source(name, "problems of your own, in columns of your own", convert)


def check_names(place: Place) -> None:
    """Raises ProblemError for a column that the schema has not, with the nearest that it has."""
    for name in (*place.columns, *place.constants):
        if name not in COLUMNS:
            raise ProblemError(
                f"no column {name!r}{near(name, COLUMNS)}",
                f"problems have {', '.join(COLUMNS)}",
                "columns",
            )


def pairs(written: Iterable[str]) -> dict[str, str]:
    """`ours=theirs` each. Raises ProblemError for one that is none."""
    found = dict[str, str]()
    for part in written:
        ours, equals, theirs = part.strip().partition("=")
        if not equals or not ours.strip() or not theirs:
            raise ProblemError(
                f"{part!r} is no pair", "write OURS=THEIRS, e.g. statement=prompt", "columns"
            )
        found[ours.strip()] = theirs
    return found


def constant(written: str) -> Any:
    """A value as the command line has it: JSON where it is some (`3`, `true`, `["a"]`), else the text itself."""
    try:
        return json.loads(written)
    except ValueError:
        return written


def record_of(row: Row, place: Place, where: str) -> dict[str, Any]:
    """The row under the schema's names. Raises ProblemError naming a column that is not there, with the nearest that is."""
    taken = {ours: _value(row, theirs, where) for ours, theirs in place.columns.items()}
    rest = {
        key: value
        for key, value in row.items()
        if key not in place.columns.values() and key not in taken
    }
    given = {**rest, **taken, **place.constants}
    record = {key: value for key, value in given.items() if value is not None or key not in COLUMNS}
    for name in LISTS:
        if name in record:
            record[name] = _list(record[name])
    for name in OBJECTS:
        if isinstance(record.get(name), str):
            record[name] = _json(record[name], record[name])
    if "tests" in record:
        _read_tests(record, where)
    if (
        "problem_id" not in record
        and "id" not in record
        and isinstance(record.get("statement"), str)
    ):
        record["problem_id"] = hashlib.sha256(
            record["statement"].encode("utf-8", "surrogatepass")
        ).hexdigest()[:12]
    return record


def _read_tests(record: dict[str, Any], where: str) -> None:
    """Puts the tests in the schema's form, and what follows from them: style and entry point where they are not given."""
    tests = _json(record["tests"], record["tests"])
    if isinstance(tests, Mapping) and "inputs" in tests:
        style, name, record["tests"] = tests_of(dict(tests), where)
        record |= {
            "tests": list(record["tests"]),
            "style": record.get("style", style),
            "entry_point": record.get("entry_point", name),
        }
        return
    listed = [tests] if isinstance(tests, str) else tests
    if not isinstance(listed, list) or not listed:
        record["tests"] = listed
    elif all(isinstance(test, str) for test in listed):
        record["tests"] = _of_texts(record, listed, where)
    elif all(isinstance(test, Mapping) and {"input", "output"} <= set(test) for test in listed):
        record["tests"] = [{"stdin": test["input"], "stdout": test["output"]} for test in listed]
    else:
        record["tests"] = listed


def _of_texts(record: dict[str, Any], tests: list[str], where: str) -> list[dict[str, Any]]:
    """Texts that hold our tests as JSON, or Python; `assert` lines about a function become tests that check a candidate."""
    read = [_json(test, None) for test in tests]
    if all(isinstance(test, dict) for test in read):
        return read
    if record.get("style") != "assert" or all("def check(" in test for test in tests):
        return [{"source": test} for test in tests]
    solution = (record.get("solutions") or [""])[0]
    name = record["entry_point"] = record.get("entry_point") or called(solution, tests, where)
    return [check(test, name, used(solution, tests)) for test in tests]


def _value(row: Row, name: str, where: str) -> Any:
    if name in row:
        return row[name]
    value: Any = row
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            there = [str(key) for key in row]
            raise ProblemError(
                f"column {name!r} is missing{near(name, there)}",
                f"there are: {', '.join(sorted(there))}"[:300],
                where,
            )
        value = value[part]
    return value


def _list(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    read = _json(value, None)
    return read if isinstance(read, list) else [value] if value.strip() else []


def _json(value: Any, otherwise: Any) -> Any:
    """What a text that begins as a JSON list or object holds."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("[", "{"):
        return otherwise
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return otherwise
