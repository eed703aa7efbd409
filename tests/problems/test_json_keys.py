"""A problem whose integer keys JSON has made text says so, and how to write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from problems.sources.registry import load
from problems.verification.settings import Verification
from problems.verification.verification import VerifiedProblems, verify
from sandbox.sandbox import Sandbox

COUNT = "def f(xs):\n    return {x: xs.count(x) for x in xs}\n"
TOTAL = "def f(d):\n    return sum(key * value for key, value in d.items())\n"


def verified(tmp_path: Path, sandbox: Sandbox, solution: str, tests: list[Any]) -> VerifiedProblems:
    row = {
        "id": "a",
        "statement": "Do it.",
        "style": "call",
        "entry_point": "f",
        "tests": tests,
        "solutions": [solution],
    }
    (tmp_path / "mine.jsonl").write_text(json.dumps(row), encoding="utf-8")
    problems = load("mine", tmp_path / "mine.jsonl").problems
    return verify(problems, sandbox, tmp_path / "journal.jsonl", Verification(mutants=1, repeats=1))


@pytest.mark.parametrize(
    ("solution", "test", "example"),
    [
        (COUNT, {"args": [[4, 4, 5]], "expected": {"4": 2, "5": 1}}, "[[4, 2], [5, 1]]"),
        (TOTAL, {"args": [{"4": 2}], "expected": 8}, "[[4, 2]]"),
    ],
)
def test_the_reason_says_how_to_write_integer_keys(
    tmp_path: Path, sandbox: Sandbox, solution: str, test: dict[str, Any], example: str
) -> None:
    [row] = verified(tmp_path, sandbox, solution, [test]).removed
    assert "are text, such as '4', as in all JSON" in row.detail
    assert row.detail.endswith(f'write {{"$dict": {example}}}')


def test_keys_written_so_are_integers(tmp_path: Path, sandbox: Sandbox) -> None:
    tests = [
        {"args": [[number, number, 5]], "expected": {"$dict": [[number, 2], [5, 1]]}}
        for number in (1, 2, 3)
    ]
    result = verified(tmp_path, sandbox, COUNT, tests)
    assert not any("$dict" in row.detail for row in result.removed)
    assert [problem.problem_id for problem in result.problems] == ["mine/a"]


def test_another_failure_has_no_such_hint(tmp_path: Path, sandbox: Sandbox) -> None:
    test = {"args": [{"a": 1}], "expected": {"a": 2}}
    [row] = verified(tmp_path, sandbox, "def f(d):\n    return d\n", [test]).removed
    assert "JSON" not in row.detail
