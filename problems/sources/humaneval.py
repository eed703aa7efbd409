"""HumanEval, 164 tasks (Chen et al. 2021, arXiv:2107.03374; MIT). Gated: for evaluation only.

The starter code is upstream's prompt, which a completion continues. A solution is prompt +
canonical solution; the only test is upstream's `check(candidate)`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from problems.reading.humaneval import docstring, named
from problems.reading.source import Row, Source, number, text
from problems.schema import Problem
from sandbox.protocol import Limits

# 3 s of wall time per program, as in the published harness
LIMITS = Limits.of_work(3.0, memory_mb=512)


def convert(
    row: Row,
    where: str,
    source: str = "humaneval",
    licence: str = "MIT",
    extra: dict[str, Any] | None = None,
) -> Problem:
    """Convert a row of `HumanEval.jsonl`, or of a release with the same keys."""
    task, prompt, entry_point = (
        number(row, "task_id", where),
        text(row, "prompt", where),
        text(row, "entry_point", where),
    )
    return Problem(
        problem_id=f"{source}/{task}",
        source=source,
        statement=docstring(prompt, entry_point, where),
        style="assert",
        tests=({"source": text(row, "test", where)},),
        entry_point=entry_point,
        starter_code=prompt,
        solutions=(prompt + text(row, "canonical_solution", where),),
        limits=LIMITS,
        tags=("humaneval",),
        split="heldout",
        licence=licence,
        gated=True,
        extra={"task_id": task} | (extra or {}),
    )


def plus(row: Row) -> bool:
    """Return whether a task has EvalPlus's inputs; the hub has them within the test."""
    return "plus_input" in row or "def assertion(" in str(row.get("test"))


HUMANEVAL = Source(
    "humaneval",
    "HumanEval, 164 tasks, gated",
    partial(convert, source="humaneval"),
    "openai/openai_humaneval",
    None,
    ("HumanEval.jsonl.gz", "HumanEval.jsonl"),
    fits=lambda row: named(row) and not plus(row),
)
