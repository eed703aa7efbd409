"""LiveCodeBench's rows, wherever they are: gated, with their packed tests.

The reader is the one of the known source (problems/reading/livecodebench.py).
"""

from __future__ import annotations

from dataclasses import asdict

from problems.reading.livecodebench import convert
from problems.reading.source import Record, Row
from problems.shapes.shape import RowShape

COLUMNS = (
    "problem_id",
    "statement",
    "style",
    "entry_point",
    "starter_code",
    "visible_tests",
    "split",
    "gated",
    "compare",
)


def read(row: Row, where: str) -> Record:
    """Read a row of any release."""
    problem = convert(row, where)
    return {name: getattr(problem, name) for name in COLUMNS} | {
        "problem_id": problem.problem_id.replace("/", "_"),
        "tests": list(problem.tests),
        "tags": list(problem.tags),
        "limits": asdict(problem.limits),
        "extra": problem.extra | {"question_id": problem.problem_id},
    }


LIVECODEBENCH_ROWS = RowShape(
    "livecodebench",
    "LiveCodeBench, code generation",
    ("question_id", "question_content", "public_test_cases", "private_test_cases"),
    read,
    (
        "question_id",
        "question_content",
        "question_title",
        "public_test_cases",
        "private_test_cases",
        "starter_code",
        "metadata",
    ),
    "CC",
)
