"""Read any training file: problems in the columns of the schema, published rows, or prompts with
answers.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from problems.columns import ProblemError
from problems.reading.fine_tuning_rows import pair_of
from problems.reading.mapping import record_of
from problems.reading.own import own
from problems.reading.place import Place
from problems.reading.rows import local_rows
from problems.reading.source import Rejected, Row
from problems.schema import Problem
from problems.shapes.registry import published_record

NAME = "rows"  # the source of the rows, which their ids do not show


def read_training_file(path: Path, place: Place) -> tuple[list[Problem], list[Rejected]]:
    """Read a file of problems, or of prompts with answers: `tests` and `style` may be missing.

    place: names and constants of columns. Raises FileNotFoundError and ProblemError if there is
    nothing to read.
    """
    problems, rejected = dict[str, Problem](), list[Rejected]()
    for where, row in local_rows(own(NAME), path):
        try:
            if isinstance(row, ProblemError):
                raise row
            problem = _training_row(_record(row, place, where), where)
        except ProblemError as error:
            rejected.append(Rejected(where, error.reason, error.fix))
            continue
        if problem.problem_id in problems:  # e.g. several answers to a prompt
            name = f"{problem.problem_id} ({where.rpartition(': ')[2]})"
            problem = replace(problem, problem_id=name)
        problems[problem.problem_id] = problem
    return list(problems.values()), rejected


def _record(row: Row, place: Place, where: str) -> Row:
    if not place.columns:
        if published := published_record(row, where):
            return published
        row = row if "statement" in row else pair_of(row) or row
    record = record_of(row, place, where)
    if "statement" not in record:
        raise ProblemError(
            f"no statement among {', '.join(map(str, row))}"[:200],
            "name its column: --columns statement=...",
            where,
        )
    return record


def _training_row(row: Row, where: str) -> Problem:
    if row.get("tests"):
        problem = own(NAME).convert(row, where)
        return _renamed(problem)
    # Any valid test: it is taken out again.
    stand_in = {"style": "stdio", "tests": [{"stdin": "", "stdout": ""}]}
    problem = own(NAME).convert({**row, **stand_in}, where)
    return _renamed(replace(problem, style="assert", tests=()))


def _renamed(problem: Problem) -> Problem:
    return replace(problem, problem_id=problem.problem_id.removeprefix(f"{NAME}/"))
