"""HumanEval+ v0.1.10, 164 tasks (EvalPlus, arXiv:2305.01210; Apache-2.0).

Gated: for evaluation only. Tests: base inputs, plus inputs (problems/reading/plus.py). The hub's
dataset has one test instead, upstream's own program over both.
"""

from __future__ import annotations

from dataclasses import replace

from problems.columns import ProblemError
from problems.reading.humaneval import named
from problems.reading.plus import plus_test
from problems.reading.source import Row, Source
from problems.schema import Problem
from problems.sources import humaneval
from sandbox.protocol import Limits

RELEASE = "v0.1.10"
LIMITS = Limits.of_work(10.0, memory_mb=512)  # per test, of up to 1000 inputs
# These have outputs of megabytes, or long sums.
SLOW = dict.fromkeys((15, 59, 130, 139), Limits.of_work(30.0, memory_mb=512))
# Task 32 accepts any root of the polynomial.
ROOT = "abs(sum(c * got**i for i, c in enumerate(args[0]))) <= atol"


def convert(row: Row, where: str) -> Problem:
    """Convert a row of `HumanEvalPlus.jsonl`, or of the hub's dataset, which has no inputs."""
    problem = humaneval.convert(row, where, "humanevalplus", "Apache-2.0", {"release": RELEASE})
    problem = replace(problem, limits=SLOW.get(problem.extra["task_id"], LIMITS))
    if "plus_input" not in row:
        return problem
    if not isinstance(row["plus_input"], list) or not isinstance(row.get("base_input"), list):
        raise ProblemError(
            "keys 'base_input' and 'plus_input' are no lists", "fetch the file again", where
        )
    name, canonical, atol = (
        problem.entry_point or "",
        problem.solutions[0],
        float(row.get("atol") or 0),
    )
    same = ROOT if name == "find_zero" else "got == expected"
    tests = tuple(
        plus_test(canonical, name, row[key], atol, same) for key in ("base_input", "plus_input")
    )
    return replace(
        problem,
        tests=tests,
        extra=problem.extra | {"tests": ["base", "plus"], "plus_inputs": len(row["plus_input"])},
    )


HUMANEVALPLUS = Source(
    "humanevalplus",
    "HumanEval+ v0.1.10, 164 tasks, gated",
    convert,
    "evalplus/humanevalplus",
    None,
    ("HumanEvalPlus.jsonl.gz", "HumanEvalPlus.jsonl"),
    fits=lambda row: named(row) and humaneval.plus(row),
)
