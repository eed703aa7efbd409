"""The user's own problems: JSON, JSONL or parquet whose keys are the columns of the schema.

Required: `problem_id` (or `id`), `statement`, `style`, `tests`, and `entry_point` for style call.
Everything else has a default; unknown keys are kept in `extra`. Tests of style assert may be plain
`assert` statements that name the entry point. Tests of style pytest are a pytest module, with
functions or classes, which imports the solution from `solution`. Values that JSON lacks are tagged,
e.g. `{"$tuple": [1, 2]}` (problems/encoding.py).
"""

from __future__ import annotations

import ast
from typing import Any

from problems.columns import COLUMNS, LIST_COLUMNS, ProblemError
from problems.encoding import decode, read_text
from problems.reading.asserts import check, used
from problems.reading.pytest_module import pytest_tests
from problems.reading.source import Row, Source, python
from problems.schema import Problem, from_record, from_row
from problems.syntax import tree_of
from sandbox.languages import LANGUAGES, PYTHON
from sandbox.protocol import Invalid, Limits
from sandbox.reading import means, shown
from sandbox.styles import STYLES

NESTED = ("tests", "limits", "extra", *LIST_COLUMNS)
EXAMPLES = {name: style.example for name, style in STYLES.items() if style.example}


def own(name: str) -> Source:
    """Return a source of that name for the user's files; ids get the prefix `name/` if missing."""

    def convert(row: Row, where: str) -> Problem:
        row = {key: _of_text(key, value, where) for key, value in row.items()}
        record = {
            key: value for key, value in row.items() if key != "id" and not _empty(key, value)
        }
        key = row.get("problem_id", row.get("id"))
        if key is None or not str(key).strip():
            raise ProblemError(
                "column problem_id is missing",
                "add it: text, not empty, of each problem its own",
                where,
            )
        record["problem_id"] = str(key) if str(key).startswith(f"{name}/") else f"{name}/{key}"
        record["source"] = name
        # by adding their own file, users state that they may use it
        record.setdefault("licence", "own")
        if row.get("style") == "pytest":
            record |= _pytest(row, where)
            record["entry_point"] = row.get("entry_point") or record["entry_point"]
            return _runnable(from_record(record, where), where)
        if "tests" in record:
            record["tests"] = _rows_of(record["tests"])
        if isinstance(tests := record.get("tests"), list) and any(
            isinstance(test, str) for test in tests
        ):
            if all(isinstance(test, str) and test.lstrip().startswith("{") for test in tests):
                return _runnable(from_row(record, where), where)  # written by write_parquet
            record["tests"] = _checks(record, tests, where)
        for column in ("tests", "extra"):
            if column in record:
                try:
                    record[column] = decode(record[column])
                except (ValueError, RecursionError) as error:
                    raise ProblemError(
                        f"column {column}: {error}", "see problems/encoding.py for the tags", where
                    ) from error
        return _runnable(from_record(record, where), where)

    return Source(name, "problems of your own, in the columns of the schema", convert)


def _of_text(column: str, value: Any, where: str) -> Any:
    """Return the value of a column of lists or objects that a table holds as JSON text; null has
    that form too.
    """
    if column in NESTED and isinstance(value, str) and value.strip() == "null":
        return None
    if column not in NESTED or not isinstance(value, str) or value.lstrip()[:1] not in ("[", "{"):
        return value
    try:
        return read_text(value)
    except (ValueError, RecursionError) as error:
        if column in LIST_COLUMNS:  # a program may begin so
            return value
        fix = f"write {COLUMNS[column].expected}, as JSON"
        raise ProblemError(f"column {column}: broken JSON: {error}", fix, where) from error


def _rows_of(tests: Any) -> Any:
    """Return the objects of a table of tests: `datasets` and pandas store a list of objects as an
    object of columns. Anything else is returned as it is.
    """
    if not isinstance(tests, dict) or any(key.startswith("$") for key in tests):
        return tests
    columns = [
        list(column.values()) if isinstance(column, dict) else column for column in tests.values()
    ]
    if not all(isinstance(column, list) for column in columns) or len({*map(len, columns)}) != 1:
        return tests
    return [dict(zip(tests, row, strict=True)) for row in zip(*columns, strict=True)]


def _pytest(row: Row, where: str) -> dict[str, Any]:
    """Return the columns of a row whose tests are a pytest module, as one text or several."""
    tests = row.get("tests")
    sources = [tests] if isinstance(tests, str) else tests
    if not isinstance(sources, list) or not all(isinstance(each, str) for each in sources):
        reason, fix = f"column tests is {shown(tests)}", "write a pytest module as text"
        raise ProblemError(reason, fix, where)
    solutions = row.get("solutions")
    first = solutions[0] if isinstance(solutions, list) and solutions else ""
    return pytest_tests("\n\n".join(sources), "solution", str(first), "tests", where)


def overlooked(problem: Problem) -> list[tuple[str, str]]:
    """Return keys in `extra` that are probably a missing column, each with that column."""
    empty = [
        name
        for name in COLUMNS
        if getattr(problem, name) in ((), None, "", "own", Limits(), 0, False)
    ]
    return [(key, name) for key in problem.extra for name in empty if means(key, name)]


def _checks(record: Row, tests: list[Any], where: str) -> list[dict[str, str]]:
    """Convert plain `assert` statements about the entry point to tests.

    Raises ProblemError with an example test if they are anything else.
    """
    name, solutions = record.get("entry_point"), record.get("solutions")
    style = STYLES.get(str(record.get("style")))
    if (
        not (style and style.is_check)
        or not isinstance(name, str)
        or not all(_asserts(test, name) for test in tests)
    ):
        number = next(number for number, test in enumerate(tests) if isinstance(test, str))
        example = (style and style.example) or " or ".join(EXAMPLES.values())
        raise ProblemError(
            f"column tests: test {number} is {shown(tests[number])}",
            f"write each as an object, e.g. {example}",
            where,
        )
    first = solutions[0] if isinstance(solutions, list) and solutions else ""
    try:
        imports = used(first, tests)  # the solution's imports: a test runs separately from it
    except (SyntaxError, ValueError, RecursionError, TypeError):
        imports = ""
    return [check(test, name, imports) for test in tests]


def _asserts(test: Any, name: str) -> bool:
    """Return whether it is Python with only `assert` statements that name the function."""
    if not isinstance(test, str) or (tree := tree_of(test)) is None:
        return False
    names_function = any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(tree))
    return names_function and all(isinstance(node, ast.Assert) for node in tree.body)


def _empty(column: str, value: Any) -> bool:
    """Return whether the value counts as missing: a table has null where a row has no value.

    The column then has its default.
    """
    return value is None and column in COLUMNS and not COLUMNS[column].required


def _runnable(problem: Problem, where: str) -> Problem:
    """Raise ProblemError if the sandbox could not run the problem's tests, else return it.

    A checker and tests that are code must be valid Python, and an assert test must define `check`.
    """
    if problem.kind.many_rows and problem.visible_tests:
        raise ProblemError(
            "column visible_tests: a unittest's results are one a method",
            "leave it out, and show tests in the statement",
            where,
        )
    packages = problem.extra.get("packages", [])
    if not isinstance(packages, list) or not all(isinstance(name, str) for name in packages):
        raise ProblemError(
            f"column packages is {packages!r}"[:150],
            "give a list of modules that solutions and tests import",
            where,
        )
    if not isinstance(in_place := problem.extra.get("in_place", False), bool) or (
        in_place and "in_place" not in problem.kind.options
    ):
        reason = f"column in_place is {in_place!r} with style {problem.style}"[:150]
        raise ProblemError(reason, "give true or false; only assert tests read it", where)
    written = problem.extra.get("language")
    if problem.language == PYTHON and not str(written or "py").lower().startswith("py"):
        reason = f"column language is {written!r} with style {problem.style}"[:150]
        styles = " or ".join(each.name for each in STYLES.values() if "language" in each.options)
        fix = f"programs are in {PYTHON}, or with style {styles} in {' or '.join(LANGUAGES)}"
        raise ProblemError(reason, f"{fix}; rename the column if it means something else", where)
    try:
        problem.job("", "")
    except Invalid as fault:
        raise ProblemError(f"column {fault.key} {fault.reason}", fault.fix, where) from None
    python(problem.checker or "", "column checker", where, "fix its source")
    for number, test in enumerate(problem.tests if problem.kind.is_code else ()):
        tree = python(test["source"], f"column tests: test {number}", where, "fix its source")
        names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        if problem.kind.is_check and "check" not in names:
            raise ProblemError(
                f"column tests: test {number} defines no check(candidate)",
                "put its asserts into that function",
                where,
            )
    return problem
