"""LeetCodeDataset, its 228 test tasks (Xia et al. 2025, arXiv:2504.14655; MIT). A problem is a method of `class Solution`.

Upstream's prompt holds the imports and the helper classes that solutions and tests rely on (ListNode, TreeNode, is_same_list): it is the starter
code, and objects of its classes cross between tests and program by value. Some solutions import `sortedcontainers`.
"""

from __future__ import annotations

from problems.schema import Problem
from problems.sources.source import Row, Source, text
from sandbox.protocol import Limits

LIMITS = Limits.of_work(20.0, memory_mb=1024)
SLOW = dict.fromkeys(  # 16 and 24 s of CPU
    ("maximum-number-of-moves-to-kill-all-pawns", "find-the-number-of-subsequences-with-equal-gcd"), Limits.of_work(60.0, memory_mb=1024)
)


def convert(row: Row, where: str) -> Problem:
    """A row of `LeetCodeDataset-v0.3.1-test.jsonl`, or of a later release of the same keys."""
    prompt = text(row, "prompt", where)
    return Problem(
        problem_id=f"leetcode/{text(row, 'task_id', where)}",
        source="leetcode",
        statement=text(row, "problem_description", where),
        style="assert",
        tests=({"source": text(row, "test", where)},),
        entry_point=text(row, "entry_point", where),
        starter_code=prompt,
        solutions=(f"{prompt}\n{text(row, 'completion', where)}",),
        limits=SLOW.get(text(row, "task_id", where), LIMITS),
        tags=("leetcode",),
        split="heldout",
        licence="MIT",
        gated=True,
        extra={"signature": text(row, "starter_code", where), "difficulty": row.get("difficulty"), "date": row.get("estimated_date")},
    )


LEETCODE = Source(
    "leetcode",
    "LeetCodeDataset, 228 test tasks, gated",
    convert,
    "newfacade/LeetCodeDataset",
    None,
    ("LeetCodeDataset-v0.3.1-test.jsonl.gz", "LeetCodeDataset-v0.3.1-test.jsonl"),
)
