"""The shipped everyday problems: correct, graded, and the held-out ones apart from the others."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from artifacts.parsing import parse
from problems.cleaning.contamination import GatedIndex
from problems.cleaning.curation import curate
from problems.schema import Problem
from problems.sources import everyday, simple
from problems.sources.registry import load
from problems.syntax import shape
from problems.verification.settings import Verification
from problems.verification.verification import verify
from sandbox.sandbox import Sandbox


@cache
def shipped() -> tuple[Problem, ...]:
    return tuple(everyday.generate())


@pytest.mark.slow
def test_everyday_problems_pass_verification(sandbox: Sandbox, tmp_path: Path) -> None:
    verified = verify(
        shipped(), sandbox, tmp_path / "journal.jsonl", Verification(repeats=1, mutants=4)
    )
    assert verified.removed == []


@pytest.mark.slow
def test_no_cleaning_rule_removes_an_everyday_problem() -> None:
    assert curate([*shipped(), *simple.generate()], []).removed == []


@pytest.mark.slow
@pytest.mark.parametrize("source", ["humaneval", "mbpp", "leetcode", "bigcodebench"])
def test_no_everyday_problem_leaks_a_benchmark_task(
    source: str, data: Callable[[str], Path]
) -> None:
    overlaps = GatedIndex(load(source, data(source)).problems).overlaps(shipped(), 1)
    assert [overlap for overlap in overlaps if overlap.leak] == []


def test_each_split_has_its_size() -> None:
    sizes = Counter(problem.split for problem in shipped())
    assert sizes == {"train": 198, "validation": 40, "heldout": 202}


def test_no_operation_is_in_two_splits() -> None:
    splits: dict[str, set[str]] = {}
    for problem in shipped():
        splits.setdefault(without_constants(problem.solutions[0]), set()).add(problem.split)
    assert [program for program, where in splits.items() if len(where) > 1] == []


@pytest.mark.parametrize("problem", shipped(), ids=lambda problem: problem.problem_id)
def test_each_everyday_problem_has_a_grade_and_tests(problem: Problem) -> None:
    assert problem.tags[0] in ("grade-1", "grade-2", "grade-3", "grade-4")
    assert len({repr(test["args"]) for test in problem.tests}) == len(problem.tests) >= 6
    assert problem.visible_tests == 0  # the docstring says it all


def without_constants(source: str) -> str:
    """Return the shape of a program that has a zero or an empty text for every constant."""
    tree = parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str)):
            node.value = type(node.value)()
    return shape(ast.unparse(tree))
