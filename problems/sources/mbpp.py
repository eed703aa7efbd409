"""MBPP, 974 tasks, and its sanitized part, 427 (Austin et al. 2021, arXiv:2108.07732; CC-BY-4.0).

A test is one of upstream's asserts, in which the tested function is called `candidate`. One test
may be shown, because it tells name and signature. A test runs separately from the solution, so what
it needs of the solution's source is copied: imports into the test (596), classes into the starter
code (367, 601, 927: objects of those classes are passed to the program by value).
"""

from __future__ import annotations

import ast
from functools import partial

from problems.cleaning.gating import is_gated_mbpp
from problems.reading.asserts import called, check, used
from problems.reading.source import Row, Source, has, number, text, texts
from problems.schema import Problem, Split
from sandbox.protocol import Limits

LICENCE = "CC-BY-4.0"
LIMITS = Limits.of_work(10.0, memory_mb=512)
SLOW = {123: Limits.of_work(40.0, memory_mb=512)}  # sums amicable numbers up to 99,999 in 3 to 11 s


def convert(row: Row, where: str, source: str) -> Problem:
    """Convert a row of upstream or of the hub, which has the same keys.

    Upstream's files are `mbpp.jsonl` (key text) and `sanitized-mbpp.json` (keys prompt,
    test_imports).
    """
    task = number(row, "task_id", where)
    code, asserts = text(row, "code", where), texts(row, "test_list", where)
    entry_point = called(code, asserts, where)
    setup = "\n".join(
        [
            *(row.get("test_imports") or []),
            str(row.get("test_setup_code") or "").replace("\r\n", "\n"),
        ]
    ).strip()
    imports = used(code, [setup, *asserts])
    gated = is_gated_mbpp(task)
    return Problem(
        problem_id=f"{source}/{task}",
        source=source,
        statement=text(row, "text" if "text" in row else "prompt", where),
        style="assert",
        tests=tuple(check(line, entry_point, f"{imports}\n{setup}".strip()) for line in asserts),
        entry_point=entry_point,
        starter_code=used(code, [setup, *asserts], (ast.ClassDef,)),
        solutions=(code,),
        visible_tests=1,
        limits=SLOW.get(task, LIMITS),
        tags=("mbpp",),
        split=split_of(task, gated),
        licence=LICENCE,
        gated=gated,
        extra={
            "task_id": task,
            "test_list": asserts,
            "challenge_test_list": list(row.get("challenge_test_list") or []),
        },
    )


def split_of(task: int, gated: bool) -> Split:
    """Return the split; gated tasks are held out, whatever upstream's split.

    Upstream: 1-10 prompt, 11-510 test, 511-600 validation, 601-974 train.
    """
    if gated:
        return "heldout"
    return "validation" if 511 <= task <= 600 else "train"


MBPP = Source(
    "mbpp",
    "MBPP, 974 tasks",
    partial(convert, source="mbpp"),
    "google-research-datasets/mbpp",
    "full",
    ("mbpp.jsonl", "mbpp.jsonl.gz"),
    fits=lambda row: has(row, "task_id", "text", "code", "test_list"),
)
SANITIZED = Source(
    "mbpp_sanitized",
    "MBPP, the 427 tasks that were checked by hand",
    partial(convert, source="mbpp_sanitized"),
    "google-research-datasets/mbpp",
    "sanitized",
    ("sanitized-mbpp.json",),
    fits=lambda row: has(row, "task_id", "prompt", "code", "test_list") and "test" not in row,
)
