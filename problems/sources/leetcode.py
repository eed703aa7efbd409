"""LeetCodeDataset (Xia et al. 2025, arXiv:2504.14655; MIT): 1570 train and 228 gated test tasks.

A problem is a method of `class Solution`. Upstream's prompt holds the imports and helper classes
that solutions and tests use (ListNode, TreeNode, is_same_list). It is the starter code, and objects
of its classes are passed between tests and program by value. Some solutions import
`sortedcontainers`.

Upstream splits by date; a test task is gated in any file (problems/cleaning/gating.py). There are
two forms: v0.3.1 has a key for the description; in v0.1.0 the query begins with it.
"""

from __future__ import annotations

from functools import partial

from problems.cleaning.gating import is_gated_leetcode
from problems.columns import ProblemError
from problems.reading.source import Row, Source, has, text
from problems.schema import Problem
from sandbox.protocol import Limits

LIMITS = Limits.of_work(20.0, memory_mb=1024)
SLOW = dict.fromkeys(  # 16 and 24 s of CPU
    ("maximum-number-of-moves-to-kill-all-pawns", "find-the-number-of-subsequences-with-equal-gcd"),
    Limits.of_work(60.0, memory_mb=1024),
)


def convert(row: Row, where: str, source: str) -> Problem:
    """Convert a row of `LeetCodeDataset-v0.3.1-test.jsonl` or `-v0.1.0-train.jsonl`.

    Later releases with the same keys work too.
    """
    task, prompt = text(row, "task_id", where), text(row, "prompt", where)
    meta = row["meta"] if isinstance(row.get("meta"), dict) else row
    gated = source == "leetcode" or is_gated_leetcode(task, *dated(row))
    return Problem(
        problem_id=f"{source}/{task}",
        source=source,
        statement=_statement(row, where),
        style="assert",
        tests=({"source": text(row, "test", where)},),
        entry_point=text(row, "entry_point", where),
        starter_code=prompt,
        solutions=(f"{prompt}\n{text(row, 'completion', where)}",),
        limits=SLOW.get(task, LIMITS),
        tags=("leetcode",),
        split="heldout" if gated else "train",
        licence="MIT",
        gated=gated,
        extra={
            "signature": row.get("starter_code", meta.get("lang_code")),
            "difficulty": meta.get("difficulty"),
            "date": row.get("estimated_date"),
        },
    )


def _statement(row: Row, where: str) -> str:
    if "problem_description" in row:
        return text(row, "problem_description", where)
    if statement := text(row, "query", where).split("Please complete the following")[0].strip():
        return statement
    raise ProblemError(
        "key 'query' asks for nothing before the code to complete",
        "the task has pictures alone: leave it out",
        where,
    )


def fits(row: Row, *, gated: bool) -> bool:
    """Return whether a row is of LeetCodeDataset's test split (`gated`), or of its train split."""
    return has(row, "prompt", "completion", "query", "test") and gated == is_gated_leetcode(
        str(row.get("task_id")), *dated(row)
    )


def dated(row: Row) -> tuple[str, str]:
    """Return date and question number of a task; empty where the row has none."""
    meta = row["meta"] if isinstance(row.get("meta"), dict) else row
    return str(row.get("estimated_date") or ""), str(meta.get("question_id") or "")


HUB = "newfacade/LeetCodeDataset"
LEETCODE = Source(
    "leetcode",
    "LeetCodeDataset, 228 test tasks, gated",
    partial(convert, source="leetcode"),
    HUB,
    None,
    ("LeetCodeDataset-v0.3.1-test.jsonl.gz", "LeetCodeDataset-v0.3.1-test.jsonl"),
    hub_split="test",
    fits=partial(fits, gated=True),
)
LEETCODE_TRAIN = Source(
    "leetcode_train",
    "LeetCodeDataset, 1570 train tasks",
    partial(convert, source="leetcode_train"),
    HUB,
    None,
    ("LeetCodeDataset-v0.1.0-train.jsonl.gz", "LeetCodeDataset-v0.1.0-train.jsonl"),
    hub_split="train",
    fits=partial(fits, gated=False),
)
