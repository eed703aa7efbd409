"""HumanEval+ v0.1.10, 164 tasks (EvalPlus, arXiv:2305.01210; Apache-2.0). Gated: for evaluation only.

Loaded so far: statement, entry point, base test, canonical solution. The plus inputs are counted, not yet run: a score over these problems is a
HumanEval score on the corrected solutions, not a HumanEval+ score.
"""

from __future__ import annotations

from problems.schema import Problem
from problems.sources import humaneval
from problems.sources.source import Row, Source

RELEASE = "v0.1.10"


def convert(row: Row, where: str) -> Problem:
    """A row of `HumanEvalPlus.jsonl`, or of the hub's dataset, whose `test` holds base and plus inputs together."""
    extra = {"release": RELEASE, "plus_inputs": len(row.get("plus_input") or []), "atol": float(row.get("atol") or 0)}
    return humaneval.convert(row, where, "humanevalplus", "Apache-2.0", extra)


HUMANEVALPLUS = Source(
    "humanevalplus",
    "HumanEval+ v0.1.10, 164 tasks, gated (base test only)",
    convert,
    "evalplus/humanevalplus",
    None,
    ("HumanEvalPlus.jsonl.gz", "HumanEvalPlus.jsonl"),
)
