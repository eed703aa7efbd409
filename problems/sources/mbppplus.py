"""MBPP+ v0.2.0, 378 tasks (EvalPlus, arXiv:2305.01210; Apache-2.0). Gated: for evaluation only.

Loaded so far: statement, entry point, base tests, canonical solution. The plus inputs are counted, not yet run, and upstream's special comparisons
(results equal as sets) are not made: a score over these problems is not an MBPP+ score.
"""

from __future__ import annotations

import ast
from typing import Any

from problems.record import ProblemError
from problems.schema import Problem
from problems.sources.mbpp import LIMITS, SLOW, called, check, used
from problems.sources.source import Row, Source, number, text, texts
from problems.syntax import parse

RELEASE = "v0.2.0"


def convert(row: Row, where: str) -> Problem:
    """A row of `MbppPlus.jsonl` (keys canonical_solution, assertion) or of the hub's dataset (keys code, test_list, test_imports)."""
    task = number(row, "task_id", where)
    prompt = text(row, "prompt", where)
    from_hub = "code" in row
    code = text(row, "code" if from_hub else "canonical_solution", where)
    asserts = texts(row, "test_list", where) if from_hub else statements(text(row, "assertion", where), where)
    setup = "\n".join(row.get("test_imports") or [])
    entry_point = called(code, asserts, where)
    extra: dict[str, Any] = {
        "task_id": task,
        "release": RELEASE,
        "plus_inputs": len(row.get("plus_input") or []),
        "atol": float(row.get("atol") or 0),
    }
    return Problem(
        problem_id=f"mbppplus/{task}",
        source="mbppplus",
        statement=prompt if from_hub else prompt.strip().strip('"').split("\nassert ")[0].strip(),
        style="assert",
        tests=tuple({"source": check(line, entry_point, setup)} for line in asserts),
        entry_point=entry_point,
        starter_code=used(code, asserts, (ast.ClassDef,)),
        solutions=(code,),
        visible_tests=1,
        limits=SLOW.get(task, LIMITS),
        tags=("mbpp",),
        split="heldout",
        licence="Apache-2.0",
        gated=True,
        extra=extra,
    )


def statements(source: str, where: str) -> list[str]:
    """The asserts of a row, one text each; some are written over several lines. Raises ProblemError when they are no Python."""
    try:
        return [ast.unparse(node) for node in parse(source).body]
    except (SyntaxError, ValueError) as error:
        raise ProblemError(f"key 'assertion' is no Python ({error})", "mend the row", where) from error


MBPPPLUS = Source(
    "mbppplus", "MBPP+ v0.2.0, 378 tasks, gated (base tests only)", convert, "evalplus/mbppplus", None, ("MbppPlus.jsonl.gz", "MbppPlus.jsonl")
)
