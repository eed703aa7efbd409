"""The strength of tests, measured with mutants of the solutions."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any

import pytest

from problems.verification.settings import Verification
from problems.verification.verification import verify
from sandbox.sandbox import Sandbox
from tests.problems.test_verification import toy

LAX = ({"args": [1], "expected": 2}, {"args": [1], "expected": 2})


def test_tests_that_accept_mutants_are_too_weak(sandbox: Sandbox, tmp_path: Path) -> None:
    """With the input 1 alone, `x + 1` equals `x * 2`."""
    branchy = (
        "def f(x):\n    if x > 5 or x == 4:\n        return x - 1\n    if x < -5:\n"
        "        return x * 3\n    return x + 1"
    )
    strong, lax, gated, composed = (
        toy(key, branchy) for key in ("strong", "lax", "gated", "composed")
    )
    inputs = (9, 6, 5, 4, 3, 0, -5, -6, -9)
    strong = dataclasses.replace(
        strong, tests=tuple({"args": [x], "expected": branchy_value(x)} for x in inputs)
    )
    lax, gated = (
        dataclasses.replace(lax, tests=LAX),
        dataclasses.replace(gated, tests=LAX, gated=True),
    )
    composed = dataclasses.replace(composed, tests=LAX, extra={"composition": "a|b"})
    verified = verify(
        [strong, lax, gated, composed], sandbox, tmp_path / "journal", Verification(mutants=8)
    )
    assert [problem.problem_id for problem in verified.problems] == [
        "toy/strong",
        "toy/gated",
        "toy/composed",
    ]
    [removed] = verified.removed
    of = {row.problem_id: row for row in verified.strength}
    assert removed.reason == "tests too weak"
    assert of["toy/lax"].survivors[0] in removed.detail
    assert not of["toy/lax"].kept
    assert (
        of["toy/strong"].killed
        == of["toy/strong"].mutants
        == 8
        > 2 * of["toy/lax"].killed
        == 2 * of["toy/gated"].killed
    )


def branchy_value(x: int) -> int:
    return x - 1 if x > 5 or x == 4 else x * 3 if x < -5 else x + 1


STYLES = {
    "stdio": (
        "n = int(input())\nif n > 3:\n    n = n - 1\nprint(n * 2)",
        ({"stdin": "4\n", "stdout": "6\n"}, {"stdin": "3\n", "stdout": "6\n"}),
    ),
    "assert": (
        "def f(x): return x * 2 - 1",
        ({"source": "def check(candidate):\n    assert candidate(4) == 7 and candidate(1) == 1"},),
    ),
    "unittest": (
        "def f(x): return x * 2 - 1",
        (
            {
                "source": "import unittest\nclass T(unittest.TestCase):\n    def test_it(self):\n"
                "        self.assertEqual(f(4), 7)"
            },
        ),
    ),
}


@pytest.mark.parametrize("style", STYLES)
def test_test_strength_is_measured_in_every_style(
    sandbox: Sandbox, tmp_path: Path, style: Any
) -> None:
    solution, tests = STYLES[style]
    problem = toy(
        "1", solution, style=style, tests=tests, entry_point=None if style == "stdio" else "f"
    )
    [row] = verify([problem], sandbox, tmp_path / "journal").strength
    assert row.mutants >= 2
    assert row.killed == row.mutants


def test_an_endless_mutant_is_stopped_by_its_cpu_limit(sandbox: Sandbox, tmp_path: Path) -> None:
    endless = (
        "def f(x):\n    n = 0\n    while n != abs(x):\n        n = n + 1\n    return x + n - n + 1"
    )
    start = time.monotonic()
    [row] = verify(
        [toy("1", endless)], sandbox, tmp_path / "journal", Verification(mutants=3)
    ).strength
    assert row.mutants + row.equivalent == 3
    assert row.killed >= 1
    assert time.monotonic() - start < 60, "mutants are stopped by their CPU time"
