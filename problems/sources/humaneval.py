"""HumanEval, 164 tasks (Chen et al. 2021, arXiv:2107.03374; MIT). Gated: for evaluation only.

The starter code is upstream's prompt, which a completion continues. A solution is prompt +
canonical solution; the only test is upstream's `check(candidate)`.
"""

from __future__ import annotations

import ast
import inspect
from functools import partial
from typing import Any

from problems.columns import ProblemError
from problems.reading.source import Row, Source, has, number, python, text
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


def docstring(prompt: str, entry_point: str, where: str) -> str:
    """Return the text of the prompt's docstring, which follows an import in task 115.

    Raises ProblemError if there is none.
    """
    functions = [
        node
        for node in python(prompt, "key 'prompt'", where).body
        if isinstance(node, ast.FunctionDef) and node.name == entry_point
    ]
    for node in functions[-1].body if functions else []:
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            return inspect.cleandoc(node.value.value)
    raise ProblemError(f"key 'prompt' has no docstring of {entry_point}", "fix the row", where)


def named(row: Row) -> bool:
    """Return whether a row is one of HumanEval's tasks, in any of its releases."""
    own = has(row, "prompt", "canonical_solution", "entry_point")
    return own and str(row.get("task_id")).startswith("HumanEval/")


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
