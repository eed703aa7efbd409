"""rLLM's own rows of code tasks, as its dataset registry writes them.

`question` with rLLM's instructions, `ground_truth` with the tests as JSON text or a pytest module
about `solution`, `data_source`. If the row also has DeepCoder's `problem` and `solutions`, these
are read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from problems.reading.cases import read_tests, solved
from problems.reading.prose import programs, statement
from problems.reading.pytest_module import pytest_tests
from problems.reading.source import Record, Row
from problems.shapes.shape import RowShape

# LiveCodeBench's instructions, which rLLM writes around the statement.
_BEFORE = re.compile(
    r"\AYou are an expert Python programmer\. You will be given a question \(problem "
    r"specification\)[^\n]*\n\n"
)
_AFTER = re.compile(r"\s*### Format: .*\Z", re.DOTALL)


def truth_tests(written: Any, key: str, where: str, code: str, solutions: Sequence[str]) -> Record:
    """Return the tests of a ground truth: a pytest module about `solution`, or what `read_tests`
    reads.

    code: starter code or statement. Raises ProblemError.
    """
    if isinstance(written, str) and written.lstrip().startswith(("from ", "import ", "def ")):
        return pytest_tests(written, "solution", "".join(solutions[:1]), key, where)
    return read_tests(written, key, where, code="\n".join([code, *solutions[:1]]))


def read(row: Row, where: str) -> Record:
    """Read a row of `train.parquet`, or of `train.arrow` saved as parquet."""
    written = statement(row, "problem" if row.get("problem") else "question", where)
    starter, solutions = str(row.get("starter_code") or ""), programs(row.get("solutions"))
    record = truth_tests(row["ground_truth"], "ground_truth", where, starter, solutions)
    record["statement"] = _AFTER.sub("", _BEFORE.sub("", written)).strip()
    if starter:
        record["extra"] = record.get("extra", {}) | {"signature": starter}
    if row.get("uid"):
        record["problem_id"] = str(row["uid"])
    return solved(record, solutions)


RLLM = RowShape(
    "rllm",
    "rLLM's parquet",
    ("question", "ground_truth", "data_source"),
    read,
    ("question", "problem", "ground_truth", "tests", "solutions", "starter_code"),
)
