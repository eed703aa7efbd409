"""Each kind of augmentation changes statement and solutions consistently."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from problems.augmentation import composed, constant, inverted
from problems.augmentation.composed import covered
from problems.augmentation.draft import Draft
from problems.schema import Problem
from tests.problems.test_augmentation import toy


def draft(mutate: Any, problem: Problem, *others: Problem) -> Draft:
    derived = mutate(problem, [problem, *others], Random(1))
    assert isinstance(derived, Draft), derived
    return derived


def test_a_constant_changes_in_statement_and_solutions() -> None:
    derived = draft(constant.mutate, toy())
    _, new = derived.change.split(" → ")
    assert f"and {new}." in derived.statement
    assert derived.solutions == (
        f"def f(x):\n    return x + {new}\n",
        f"def f(x):\n    return {new} + x\n",
    )


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        (toy("Write f(x): x and 5, for instance f(1) == 6."), "examples"),
        (toy("Write f(x), which returns 5 more than x; f([1]) is 6."), "examples"),
        (toy(solutions=toy().solutions[:1]), "two solutions"),
        (toy("Write f(x): x, 5 and 5 again."), "once"),
        (toy("Write f(x), modulo 10^5 and 5.5."), "once"),
        (toy(style="stdio"), "no function"),
        (toy(entry_point="S().f"), "method"),
    ],
)
def test_an_ambiguous_constant_is_not_changed(problem: Problem, why: str) -> None:
    reason = constant.mutate(problem, [problem], Random(1))
    assert isinstance(reason, str)
    assert why in reason


def test_true_and_false_are_swapped_in_statement_and_solutions() -> None:
    problem = toy(
        "Return True if x is above 5, and False otherwise.",
        "return x > 5",
        tests=({"args": [9], "expected": True},),
    )
    derived = draft(
        inverted.mutate,
        replace(
            problem,
            solutions=("def f(x):\n    if x == 5:\n        return False\n    return x > 5\n",),
        ),
    )
    assert derived.statement == "Return False if x is above 5, and True otherwise."
    assert derived.solutions == (
        "def f(x):\n    if x == 5:\n        return True\n    return not x > 5\n",
    )


@pytest.mark.parametrize(
    "source",
    [
        "def f(x):\n    return x < 1 or f(x - 2)\n",
        "def f(x):\n    for n in [x]:\n        return n > 3\n",
    ],
)
def test_recursive_or_incomplete_functions_are_not_negated(source: str) -> None:
    problem = toy(
        "Tell whether x is odd.", tests=({"args": [9], "expected": True},), solutions=(source,)
    )
    assert isinstance(inverted.mutate(problem, [], Random(1)), str)


def test_a_sort_order_is_reversed_when_two_solutions_show_it() -> None:
    solutions = (
        "def f(x):\n    return sorted(x)\n",
        "def f(x):\n    x = list(x)\n    x.sort(reverse=True)\n    return x\n",
    )
    problem = toy(
        "Write f(x), which gives x in ascending order.",
        tests=({"args": [[2, 1]], "expected": [1, 2]},),
        solutions=solutions,
    )
    derived = draft(inverted.mutate, problem)
    assert "descending" in derived.statement
    assert derived.solutions == (
        "def f(x):\n    return sorted(x, reverse=True)\n",
        "def f(x):\n    x = list(x)\n    x.sort()\n    return x\n",
    )
    assert "too few" in str(
        inverted.mutate(replace(problem, solutions=solutions[:1]), [], Random(1))
    )


def test_problems_with_different_licences_are_not_composed() -> None:
    other = toy(problem_id="toy/2", licence="CC-BY-4.0")
    assert isinstance(composed.mutate(toy(), [other], Random(1)), str)


@pytest.mark.parametrize(
    ("value", "seen", "fits"),
    [
        (3, [1, 5], True),
        (6, [1, 5], False),
        (3.0, [1, 5], False),
        (True, [0, 1], False),
        (None, [None], True),
        ("", ["a"], False),
        ("b", ["a", ""], True),
        ([], [[1]], False),
        ([2], [[1, 3], []], True),
        ([9], [[1, 3], []], False),
        ([1, 2, 3], [[1, 2], [1, 3], [2, 3]], False),
        ((1,), [[1]], False),
        ({"a": 1}, [{"b": 2, "c": 0}, {}], True),
        ({1: 1}, [{"b": 2}], False),
    ],
)
def test_a_value_fits_where_a_similar_one_was_seen(value: Any, seen: list[Any], fits: bool) -> None:
    assert covered(value, seen) is fits
