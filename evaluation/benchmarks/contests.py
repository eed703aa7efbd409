"""CodeContests, LiveCodeBench and LeetCode: tasks from contests. The prompt is prose, a completion
holds a fenced program. Gated.

A LiveCodeBench score needs a window of dates: `livecodebench@2024-08-01..2025-02-01` takes contests
from the first day to the last.
"""

from __future__ import annotations

from evaluation.benchmarks.benchmark import Benchmark, from_problems
from evaluation.benchmarks.published import Opened, Published
from evaluation.judging.by_problem import ProblemHarness, tasks_of
from evaluation.sampling import Sampling
from problems.schema import Problem
from problems.sources.registry import SOURCES
from rewards.extraction import extract_code

CONVENTIONS = (
    "greedy; the last block that can be the program; all of upstream's tests, each within its time"
)
TOKENS = 2000  # LiveCodeBench's own limit
MODULES = (
    "string, re, datetime, collections, heapq, bisect, copy, math, random, statistics, itertools, "
    "functools, operator, io, sys, json"
)
NAMES = "".join(f"from {name} import *\n" for name in f"{MODULES}, builtins, typing".split(", "))
# LiveCodeBench's testing_util.py adds this to every program.
LIVE = f"{NAMES}import {MODULES}\nsys.setrecursionlimit(50000)\n\n"


def ahead(problem: Problem) -> str:
    """Return the code that upstream puts before each program. LeetCodeDataset's prompt has the
    imports and helper classes that solutions expect.
    """
    return {"livecodebench": LIVE, "leetcode": f"{problem.starter_code}\n"}.get(problem.source, "")


def contest(at: Opened) -> Benchmark:
    """Return the benchmark; its harness's tasks have upstream's ids."""
    tasks = tasks_of(
        at.problems, lambda each: each.problem_id.partition("/")[2], lambda each: "", ahead
    )
    return from_problems(
        at.name,
        at.problems,
        Sampling(max_new_tokens=TOKENS),
        conventions=CONVENTIONS,
        harness=ProblemHarness(
            at.name,
            "2",
            "its published tests",
            tasks,
            at.digest,
            at.source.name,
            packages=("numpy", "sortedcontainers"),
            extract=extract_code,
        ),
    )


CODECONTESTS = Published("codecontests", SOURCES["codecontests"], contest)
LIVECODEBENCH = Published("livecodebench", SOURCES["livecodebench"], contest)
LEETCODE = Published("leetcode", SOURCES["leetcode"], contest)
