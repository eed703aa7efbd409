"""AceCode-87K and AceCode-V2 (Zeng et al. 2025, arXiv:2502.01718).

`question`, `test_cases` (V2: `tests`) with one assert each, and no solution. V1 has `inferences`,
completions of models with their pass rates, which become samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from problems.reading.cases import asserts
from problems.reading.prose import program, statement
from problems.reading.source import Record, Row, texts
from problems.shapes.shape import RowShape


def _key(row: Row) -> str:
    return "test_cases" if "test_cases" in row else "tests"


def _fits(row: Row) -> bool:
    tests: Any = row.get(_key(row))
    return (
        isinstance(tests, list)
        and bool(tests)
        and all(isinstance(test, str) and "assert" in test for test in tests)
    )


def read(row: Row, where: str) -> Record:
    """Read a row of `train-*.parquet`, or of `AceCode-87K.jsonl`."""
    inferences = row.get("inferences")
    completions = [
        each.get("completion")
        for each in (inferences if isinstance(inferences, list) else ())
        if isinstance(each, Mapping)
    ]
    samples = [program(text) for text in completions if isinstance(text, str)]
    record = asserts(texts(row, _key(row), where), _key(row), where)
    record["statement"] = statement(row, "question", where)
    record["licence"] = "MIT" if "test_cases" in row else "Apache-2.0"
    return record | ({"samples": samples} if samples else {})


ACECODE = RowShape(
    "acecode",
    "AceCode-87K, AceCode-V2-122K",
    ("id", "question", "source"),
    read,
    ("question", "test_cases", "tests", "inferences", "context_messages"),
    fits=_fits,
)
