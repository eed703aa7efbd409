"""Completions that continue starter code, or rely on its imports."""

from __future__ import annotations

from dataclasses import replace

import pytest

from problems.schema import Problem
from rewards.judging import judge
from rewards.starter import program_of
from sandbox.protocol import Verdict
from sandbox.sandbox import Sandbox

STARTER = '''from typing import List
import math

def helper(x):
    return x + 1


def solve(xs: List[int]) -> int:
    """Return the sum of helper over xs."""
'''
TASK = Problem(
    "mine/1",
    "mine",
    "Return the sum of helper over xs.",
    "call",
    ({"args": [[1, 2]], "expected": 5}, {"args": [[]], "expected": 0}),
    "solve",
    starter_code=STARTER,
)
BODY = "return sum(helper(x) for x in xs)"
WHOLE = f"def solve(xs: List[int]) -> int:\n    {BODY}"


@pytest.mark.parametrize(
    "completion",
    [
        WHOLE,
        STARTER + f"    {BODY}",
        f"    {BODY}",
        BODY,
        f"```python\n    {BODY}\n```",
        f"    if not xs:\n        return 0\n    {BODY}",
        "from __future__ import annotations\n\ndef solve(xs: List[int]) -> int:\n"
        "    return sum(x + 1 for x in xs)",
    ],
)
def test_what_continues_the_starter_code_is_right(sandbox: Sandbox, completion: str) -> None:
    [judged] = judge(sandbox, [(TASK, completion)])
    assert judged.report.verdict is Verdict.AC


@pytest.mark.parametrize(
    "completion", ["# done", "x = 1", "I cannot do that.", "", "def other(): 1"]
)
def test_starter_code_that_is_right_already_earns_nothing(completion: str) -> None:
    solved = replace(TASK, starter_code=STARTER + f"    {BODY}\n")
    assert program_of(solved, completion).strip() == completion


def test_the_starter_code_of_another_function_stays_out() -> None:
    other = replace(TASK, starter_code=STARTER, entry_point="solve_it")
    assert program_of(other, "def solve_it(xs): return 0") == "def solve_it(xs): return 0"


def test_a_body_does_not_continue_a_function_that_has_one() -> None:
    solved = replace(TASK, starter_code=STARTER + "    return 0\n")
    assert program_of(solved, f"    {BODY}") == f"    {BODY}"


def test_a_method_follows_the_imports_of_its_starter_code() -> None:
    starter = "from typing import List\n\nclass Solution:\n    def f(self, x: List[int]): ...\n"
    task = replace(TASK, starter_code=starter, entry_point="Solution().f")
    program = "class Solution:\n    def f(self, x: List[int]):\n        return x"
    assert program_of(task, program) == f"{starter.rstrip()}\n{program}"
