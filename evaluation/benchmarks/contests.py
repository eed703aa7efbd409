"""CodeContests, LiveCodeBench and LeetCode: tasks from contests, asked in prose and answered by a fenced program. Gated.

A LiveCodeBench score means something with a window of dates: `livecodebench@2024-08-01..2025-02-01` takes contests from the first day to the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from evaluation.benchmarks.benchmark import Benchmark, from_problems
from evaluation.generation.decoder import Sampling
from problems.columns import ProblemError
from problems.schema import Problem

CONVENTIONS = (
    "greedy; the last fenced block is the program; all of upstream's tests, each within its time"
)
TOKENS = 2000  # upstream's, of LiveCodeBench
MODULES = "string, re, datetime, collections, heapq, bisect, copy, math, random, statistics, itertools, functools, operator, io, sys, json"
NAMES = "".join(f"from {name} import *\n" for name in f"{MODULES}, builtins, typing".split(", "))
LIVE = f"{NAMES}import {MODULES}\nsys.setrecursionlimit(50000)\n\n"  # what LiveCodeBench's testing_util.py gives every program without being asked


def ahead(problem: Problem) -> str:
    """What upstream puts before each answer. LeetCodeDataset's prompt is the imports and helper classes that solutions take for granted."""
    return {"livecodebench": LIVE, "leetcode": f"{problem.starter_code}\n"}.get(problem.source, "")


def contest(name: str, problems: Sequence[Problem]) -> Benchmark:
    source = name.replace("-", "_")
    tasks = [problem for problem in problems if problem.source == source]
    return from_problems(
        name, tasks, Sampling(max_new_tokens=TOKENS), conventions=CONVENTIONS, ahead=ahead
    )


codecontests, livecodebench, leetcode = (
    partial(contest, name) for name in ("codecontests", "livecodebench", "leetcode")
)


def between(problems: Sequence[Problem], window: str) -> list[Problem]:
    """Those whose contest was in the window, `FIRST..LAST`, both days included. Raises ProblemError where it holds none, or is none."""
    first, dots, last = window.partition("..")
    if not dots or len(first) != 10 or len(last) != 10:
        raise ProblemError(
            f"{window!r} is no window of dates",
            "write livecodebench@2024-08-01..2025-02-01",
            "--benchmark",
        )
    found = [
        problem
        for problem in problems
        if first <= str(problem.extra.get("date") or "")[:10] <= last
    ]
    if not found:
        raise ProblemError(
            f"no task of {len(problems)} has a date from {first} to {last}",
            "take another window",
            "--benchmark",
        )
    return found
