"""The user's own problems: JSON, JSONL or parquet whose keys are the columns of the schema.

Needed: `problem_id` (or `id`), `statement`, `style`, `tests`, and for style call `entry_point`. Everything else has its default;
unknown keys are kept in `extra`. Values that JSON lacks are tagged, e.g. `{"$tuple": [1, 2]}` (problems/encoding.py).
"""

from __future__ import annotations

import ast
from typing import Any

from problems.encoding import decode
from problems.record import COLUMNS, ProblemError
from problems.schema import Problem, from_record, from_row
from problems.sources.source import Row, Source
from problems.syntax import parse


def own(name: str) -> Source:
    """A source of that name over the user's files; ids get `name/` in front unless they have it."""

    def convert(row: Row, where: str) -> Problem:
        record = {key: value for key, value in row.items() if key != "id" and not _empty(key, value)}
        key = row.get("problem_id", row.get("id"))
        if key is None:
            raise ProblemError("column problem_id is missing", "add it: text, not empty, of each problem its own", where)
        record["problem_id"] = str(key) if str(key).startswith(f"{name}/") else f"{name}/{key}"
        record["source"] = name
        record.setdefault("licence", "own")  # who adds a file of theirs says that they may use it
        if isinstance(row.get("tests"), list) and row["tests"] and all(isinstance(test, str) for test in row["tests"]):
            return _can_be_judged(from_row(record, where), where)  # written by write_parquet
        for column in ("tests", "extra"):
            if column in record:
                try:
                    record[column] = decode(record[column])
                except (ValueError, RecursionError) as error:
                    raise ProblemError(f"column {column}: {error}", "see problems/encoding.py for the tags", where) from error
        return _can_be_judged(from_record(record, where), where)

    return Source(name, "problems of your own, in the columns of the schema", convert)


def _empty(column: str, value: Any) -> bool:
    """A table has null where a row has no value: then a column has its default."""
    return value is None and column in COLUMNS and not COLUMNS[column].required


def _can_be_judged(problem: Problem, where: str) -> Problem:
    """Raises ProblemError when an assert test is no Python or has no `check`: the judge could not even start with it."""
    if problem.style == "unittest" and problem.visible_tests:
        raise ProblemError("column visible_tests: a unittest's results are one a method", "leave it out, and show tests in the statement", where)
    needs = problem.extra.get("packages", [])
    if not isinstance(needs, list) or not all(isinstance(name, str) for name in needs):
        raise ProblemError(f"column packages is {needs!r}"[:150], "give a list of modules that solutions and tests import", where)
    for number, test in enumerate(problem.tests if problem.style == "assert" else ()):
        try:
            names = {node.name for node in parse(test["source"]).body if isinstance(node, ast.FunctionDef)}
        except (SyntaxError, ValueError, RecursionError) as error:
            raise ProblemError(f"column tests: test {number} is no Python ({error})", "mend its source", where) from error
        if "check" not in names:
            raise ProblemError(f"column tests: test {number} defines no check(candidate)", "put its asserts into that function", where)
    return problem
