"""KodCode-V1 and KodCode-Light-RL (Xu et al. 2025, arXiv:2503.02951; CC-BY-NC-4.0).

`question`, `solution`, and `test`, a pytest module that imports from `solution` (`test_code` in the
files of its pipeline). Rows of style `online_judge` have lists `stdin` and `stdout` instead, which
is a guess: no such row was at hand.
"""

from __future__ import annotations

from problems.reading.cases import read_tests, solved
from problems.reading.prose import programs, statement
from problems.reading.pytest_module import pytest_tests
from problems.reading.source import Record, Row, text
from problems.shapes.shape import RowShape


def _key(row: Row) -> str:
    return "test" if "test" in row else "test_code"


def read(row: Row, where: str) -> Record:
    """Read a row of `train-*.parquet`."""
    written, key = text(row, _key(row), where), _key(row)
    solutions = programs(row["solution"])
    record = (
        read_tests(written, key, where)
        if written.lstrip()[:1] in ("[", "{")
        else pytest_tests(written, "solution", "".join(solutions[:1]), key, where)
    )
    return solved(record | {"statement": statement(row, "question", where)}, solutions)


KODCODE = RowShape(
    name="kodcode",
    about="KodCode-V1, KodCode-Light-RL-10K",
    keys=("question", "solution", "subset"),
    read=read,
    used=("question", "solution", "test", "test_code"),
    licence="CC-BY-NC-4.0",
    fits=lambda row: isinstance(row.get(_key(row)), str),
)
