"""Read any table of problems: map its columns to the schema and accept common formats of values.

`columns` maps a column of the schema to the row's own name (`statement` <- `prompt`); a dot reaches
into an object (`reward_model.ground_truth`). `constants` gives a column the same value in all rows.
A column in neither of them is used if it has a name of the schema, and otherwise kept in `extra`.

- `tests`: a list of our tests, JSON text of such a list, a list of `assert` lines, one text of
  Python, objects with `input` and `output`, or an object with lists `inputs` and `outputs` (and
  `fn_name`), as in APPS.
- `statement`: a text, or a chat whose last message is the task.
- `solutions`, `tags`: a list of texts, JSON text of such a list, or one text.
- `problem_id`: computed from the statement if missing. `entry_point`: found in the first solution
  if the tests are `assert` lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from textwrap import dedent
from typing import Any

from artifacts.hashing import hash_text
from problems.columns import COLUMNS, LIST_COLUMNS, ProblemError
from problems.reading.asserts import called, check, used
from problems.reading.input_output import tests_of
from problems.reading.own import own
from problems.reading.place import Place
from problems.reading.prose import chat_turns, statement
from problems.reading.source import Row, Source, python
from problems.schema import Problem
from sandbox.reading import near

OBJECTS = ("limits", "extra")


def mapped(name: str, place: Place) -> Source:
    """Return a source of that name for the rows of that place."""
    check_names(place)
    convert_own = own(name).convert

    def convert(row: Row, where: str) -> Problem:
        return convert_own(record_of(row, place, where), where)

    return Source(name, "problems of your own, in columns of your own", convert)


def check_names(place: Place) -> None:
    """Raise ProblemError for a column that the schema lacks, and suggest the nearest one."""
    for name in (*place.columns, *place.constants):
        if name not in COLUMNS:
            raise ProblemError(
                f"no column {name!r}{near(name, COLUMNS)}",
                f"use one of {', '.join(COLUMNS)}",
                "columns",
            )


def pairs(texts: Iterable[str]) -> dict[str, str]:
    """Parse `ours=theirs` pairs. Raises ProblemError for anything else."""
    result = dict[str, str]()
    for part in texts:
        column, equals, source_name = part.strip().partition("=")
        if not equals or not column.strip() or not source_name:
            raise ProblemError(
                f"{part!r} is not a pair", "write OURS=THEIRS, e.g. statement=prompt", "columns"
            )
        result[column.strip()] = source_name
    return result


def constant(written: str) -> Any:
    """Parse a value from the command line: JSON if valid (`3`, `true`, `["a"]`), else text."""
    try:
        return json.loads(written)
    except ValueError:
        return written


def record_of(row: Row, place: Place, where: str) -> dict[str, Any]:
    """Return the row under the schema's names.

    Raises ProblemError naming a missing column, with the nearest existing one.
    """
    renamed = {
        column: _value(row, source_name, where) for column, source_name in place.columns.items()
    }
    rest = {
        key: value
        for key, value in row.items()
        if key not in place.columns.values() and key not in renamed
    }
    values = {**rest, **renamed, **place.constants}
    record = {
        key: value for key, value in values.items() if value is not None or key not in COLUMNS
    }
    if isinstance(chat := record.get("statement"), list) and chat:
        record |= {"statement": statement(record, "statement", where), **chat_turns(chat)}
    for name in LIST_COLUMNS:
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
        record["problem_id"] = hash_text(record["statement"])[:12]
    return record


def _read_tests(record: dict[str, Any], where: str) -> None:
    """Convert the tests to the schema's form, and infer style and entry point if not given."""
    tests = _json(record["tests"], record["tests"])
    if isinstance(tests, Mapping) and "inputs" in tests:
        solutions = record.get("solutions")
        codes = [record.get("starter_code"), *(solutions if isinstance(solutions, list) else ())]
        codes = [code for code in codes if isinstance(code, str)]
        style, name, record["tests"], checker = tests_of(dict(tests), where, *codes)
        record |= {
            "checker": record.get("checker", checker),
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
    """Convert texts that hold our tests as JSON, or Python.

    `assert` lines about a function become tests that check a candidate.
    """
    read = [_json(test, None) for test in tests]
    if all(isinstance(test, dict) for test in read):
        return read
    if record.get("style") != "assert" or all("def check(" in test for test in tests):
        return [{"source": test} for test in tests]
    tests = [dedent(test) for test in tests]
    solution = (record.get("solutions") or [""])[0]
    for source, what in ((solution, "the solution"), *((test, "a test") for test in tests)):
        python(source, what, where)
    name = record["entry_point"] = record.get("entry_point") or called(solution, tests, where)
    return [check(test, name, used(solution, tests)) for test in tests]


def _value(row: Row, name: str, where: str) -> Any:
    if name in row:
        return row[name]
    value: Any = row
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            names = [str(key) for key in row]
            raise ProblemError(
                f"column {name!r} is missing{near(name, names)}",
                f"there are: {', '.join(sorted(names))}"[:300],
                where,
            )
        value = value[part]
    return value


def _list(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    parsed = _json(value, None)
    return parsed if isinstance(parsed, list) else [value] if value.strip() else []


def _json(value: Any, default: Any) -> Any:
    """Parse a text that starts like a JSON list or object, else return `default`."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("[", "{"):
        return default
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return default
