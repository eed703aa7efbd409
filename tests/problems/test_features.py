"""Static features of problems and the rank correlation of two orders."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata, spearmanr

from problems.difficulty.features import (
    SCORED,
    features,
    places,
    spearman,
    static_scores,
)
from problems.embedded.compositional import generate
from problems.embedded.settings import FamilyConfig
from problems.schema import Problem


def difficulty(problems: list[Problem]) -> list[float]:
    rows = [features(problem) for problem in problems]
    columns = (
        np.array([np.nan if (value := getattr(row, name)) is None else value for row in rows])
        for name in SCORED
    )
    return [float(score) for score in static_scores(columns, len(rows))]


numbers = st.lists(st.integers(-50, 50), min_size=2, max_size=30)


def toy(key: str, solution: str, statement: str = "Add one.") -> Problem:
    return Problem(
        f"toy/{key}",
        "toy",
        statement,
        "call",
        ({"args": [1], "expected": 2},),
        "f",
        solutions=(solution,),
    )


def test_features_of_a_program_are_counted() -> None:
    source = (
        "import math\n\ndef f(x):\n    for y in x:\n        if y > 0 and y < 9:\n"
        "            return math.sqrt(y)\n    return [z for z in x]\n"
    )
    counted = features(toy("a", source))
    assert (counted.statement_words, counted.tests, counted.lines, counted.imports) == (2, 1, 6, 1)
    assert counted.branches == 5  # one, for, if, and, the comprehension
    assert counted.nesting == 3  # def, for, if


def test_the_shortest_solution_that_parses_counts() -> None:
    long = "def f(x):\n    y = x\n    y = y + 1\n    return y\n"
    short = "def f(x):\n    return x + 1\n"
    several = Problem(
        "toy/a",
        "toy",
        "Add one.",
        "call",
        ({"args": [1], "expected": 2},),
        "f",
        solutions=(long, "def f(", short),
    )
    assert features(several) == features(toy("a", short))


def test_without_a_parsable_program_the_statement_decides_the_difficulty() -> None:
    problems = [toy("a", "def f(", "one two three"), toy("b", "def f(x): return x", "one")]
    assert features(problems[0]).nodes is None
    assert difficulty(problems)[0] == 1.0


@given(numbers)
def test_places_match_scaled_ranks_of_scipy(values: list[int]) -> None:
    assert places(np.array(values, float)) == pytest.approx(
        (rankdata(values) - 1) / (len(values) - 1)
    )


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=3, max_size=30))
def test_the_rank_correlation_matches_scipy(pairs: list[tuple[int, int]]) -> None:
    one, other = zip(*pairs, strict=True)
    correlation = spearman(one, other)
    assert (
        correlation is None
        if len(set(one)) == 1 or len(set(other)) == 1
        else correlation == pytest.approx(spearmanr(one, other).statistic, abs=1e-9)
    )


def test_more_operations_have_a_higher_static_difficulty() -> None:
    problems = generate(FamilyConfig(demonstrations=40, train=40, validation=4))
    agrees = spearman(difficulty(problems), [problem.extra["operations"] for problem in problems])
    assert agrees is not None
    assert agrees > 0.4
