"""Rows with `verification_info`: open-r1's verifiable coding problems, SYNTHETIC-1, SYNTHETIC-2.

It is an object, or JSON or Python text of one, with `test_cases`, or `ground_truth` (JSON text), or
the tests themselves. The statement is under `problem_statement`, `prompt` or `problem`, and the
solution, in a fence, under `gold_standard_solution`. `llm_response` becomes a sample. Other
languages, and tasks without tests (mathematics), are refused.
"""

from __future__ import annotations

from collections.abc import Mapping

from problems.columns import ProblemError
from problems.reading.cases import read_tests, solved, value_of
from problems.reading.prose import programs, statement
from problems.reading.source import Record, Row
from problems.shapes.shape import RowShape
from sandbox.reading import shown

STATEMENTS = ("problem_statement", "prompt", "problem")
TESTS = ("test_cases", "ground_truth")


def read(row: Row, where: str) -> Record:
    """Read a row of `train-*.parquet`."""
    info = value_of(row["verification_info"], "verification_info", where)
    if not isinstance(info, Mapping) or not any(info.get(key) for key in (*TESTS, "inputs")):
        raise ProblemError(
            f"key 'verification_info' is {shown(info)}",
            f"expected an object with {', '.join(TESTS)} or inputs: is it a task of code?",
            where,
        )
    if (language := info.get("language") or "python") != "python":
        raise ProblemError(f"the language is {language!r}", "only Python is judged", where)
    written = next((info[key] for key in TESTS if info.get(key)), info)
    key = next((key for key in STATEMENTS if row.get(key)), STATEMENTS[0])
    record: Record = {"statement": statement(row, key, where)}
    solutions = programs(row.get("gold_standard_solution"))
    code = "\n".join([record["statement"], *solutions])
    record |= read_tests(written, "verification_info", where, code=code)
    if samples := programs(row.get("llm_response")):
        record["samples"] = samples
    return solved(record, solutions)


VERIFICATION_INFO = RowShape(
    "verification_info",
    "open-r1/verifiable-coding-problems-python, SYNTHETIC-1, SYNTHETIC-2",
    ("verification_info",),
    read,
    ("verification_info", "gold_standard_solution", "llm_response", "messages", *STATEMENTS),
    "Apache-2.0",
)
