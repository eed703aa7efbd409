"""Tests that contradict each other, and a reference that is a table of them, are refused."""

from __future__ import annotations

from typing import Any

import pytest

from problems.schema import Problem
from problems.verification.plain_cases import CONTRADICTION, TABLE, plain_fault

TESTS = ({"args": [2], "expected": 4}, {"args": [0], "expected": 0}, {"args": [-3], "expected": -6})
NEXT = ({"args": ["red"], "expected": "green"}, {"args": ["green"], "expected": "red"})

MONTHS = ({"args": ["Jan"], "expected": 31}, {"args": ["Feb"], "expected": 28})


def reason(tests: tuple[dict[str, Any], ...], solution: str = "", **changes: Any) -> str | None:
    values: dict[str, Any] = {"statement": "Write f(x).", "style": "call", "entry_point": "f"}
    problem = Problem("x/1", "x", tests=tests, solutions=(solution,), **values | changes)
    return fault[0] if (fault := plain_fault(problem)) else None


@pytest.mark.parametrize(
    ("tests", "changes"),
    [
        ((*TESTS, {"args": [2], "expected": 5}), {}),
        (({"stdin": "1\n", "stdout": "2"}, {"stdin": "1\n", "stdout": "3"}), {"style": "stdio"}),
        (
            tuple(
                {"source": f"def check(candidate):\n    assert candidate([1]) == {value}"}
                for value in (1, 2)
            ),
            {"style": "assert"},
        ),
    ],
)
def test_two_results_of_one_input_contradict(
    tests: tuple[dict[str, Any], ...], changes: dict[str, Any]
) -> None:
    assert reason(tests, **changes) == CONTRADICTION


@pytest.mark.parametrize(
    ("first", "second", "changes"),
    [
        (4, 4, {}),
        (0.5, 0.5000001, {"tolerance": 1e-4}),
        ([1, 2], [2, 1], {"compare": "unordered"}),
        (4, 5, {"checker": "def check(): ..."}),
    ],
)
def test_results_that_are_both_right_do_not_contradict(
    first: Any, second: Any, changes: dict[str, Any]
) -> None:
    tests = ({"args": [2], "expected": first}, {"args": [2], "expected": second})
    assert reason(tests, **changes) is None


@pytest.mark.parametrize(
    "solution",
    [
        "def f(x):\n    return {2: 4, 0: 0, -3: -6}[x]",
        "def f(x):\n    if x == 2: return 4\n    if 0 == x: return 0\n    if x == -3: return -6",
        "def f(x):\n    match x:\n        case 2: return 4\n        case 0: return 0\n"
        "        case -3: return -6",
        "def f(x):\n    return 4 if x == 2 else 0 if x == 0 else -6",
        "def f(x):\n    return [4, 0, -6][[2, 0, -3].index(x)]",
        "KEYS, VALUES = (2, 0, -3), [4, 0, -6]\ndef f(x):\n    return dict(zip(KEYS, VALUES))[x]",
        "def f(x):\n    for key, value in [(0, 0), (-3, -6), (2, 4)]:\n"
        "        if key == x: return value",
    ],
)
def test_a_table_of_the_tests_is_no_reference(solution: str) -> None:
    assert reason(TESTS, solution) == TABLE


@pytest.mark.parametrize(
    ("tests", "solution", "statement"),
    [
        (TESTS, "def f(x):\n    return 2 * x", "Double x."),
        (TESTS, "def f(x):\n    return 0 if x == 0 else 2 * x", "Double x."),
        (TESTS, "def f(x):\n    return 4 if x == 2 else 0 if x == 0 else 2 * x", "Double x."),
        (TESTS, "def f(x):\n    return 4 if x == 2 else 0 if x == 0 else -6", "4 for 2, 0 for 0."),
        (NEXT, "def f(x):\n    return {'red': 'green', 'green': 'red'}[x]", "After red is green."),
        (NEXT, "def f(x):\n    return {'red': 'green', 'green': 'red', 'off': 'off'}[x]", "Next."),
        (MONTHS, "def f(x):\n    return {'Jan': 31, 'Feb': 28}[x]", "Days of a month."),
        (TESTS, "def f(x):\n    return dict([(2, 4), (0, 0), (-3, -6), (1, 2)])[x]", ""),
        (NEXT, "A, B = ['red', 'green'], [1, 2]\ndef f(x):\n    return A[B[A.index(x)] % 2]", ""),
    ],
)
def test_a_program_that_computes_or_has_the_statements_table_is_a_reference(
    tests: tuple[dict[str, Any], ...], solution: str, statement: str
) -> None:
    assert reason(tests, solution, statement=statement) is None


def test_a_table_of_mappings_is_no_reference() -> None:
    tests = (
        {"args": [{"a": 1}], "expected": {"b": 2}},
        {"args": [{"c": 3}], "expected": {"d": 4}},
    )
    solution = (
        "def f(x):\n    if x == {'a': 1}: return {'b': 2}\n    if x == {'c': 3}: return {'d': 4}"
    )
    assert reason(tests, solution) == TABLE
