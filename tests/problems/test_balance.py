"""Balancing weights favour rare groups within bounds and exclude nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from problems.dataset.balance import CAP, LEVELS, level, read_weights, shares, weigh, write_weights
from problems.schema import Problem

TESTS = ({"args": [1], "expected": 2},)
problems = st.lists(
    st.tuples(st.sampled_from(["", "a", "b", "c"]), st.floats(0, 1), st.booleans()),
    min_size=1,
    max_size=40,
).map(
    lambda rows: [
        (Problem(f"toy/{i}", "toy", "Add.", "call", TESTS, "f", tags=(tag,) if tag else ()), hard)
        for i, (tag, hard, _) in enumerate(rows)
    ]
)


def easy(count: int, tag: str) -> list[Problem]:
    return [
        Problem(f"toy/{tag}{i}", "toy", "Add.", "call", TESTS, "f", tags=(tag,))
        for i in range(count)
    ]


@given(problems)
def test_weights_are_positive_bounded_and_average_one(
    scored: list[tuple[Problem, float]],
) -> None:
    hard = {problem.problem_id: difficulty for problem, difficulty in scored}
    weights = weigh([problem for problem, _ in scored], hard)
    assert sum(row.weight for row in weights) == pytest.approx(len(scored), abs=1e-3)
    assert max(row.weight for row in weights) <= CAP**2 * min(row.weight for row in weights) + 1e-3
    assert weigh([problem for problem, _ in scored[::-1]], hard) == weights


def test_a_balanced_set_has_weights_of_one() -> None:
    both = easy(10, "a") + easy(10, "b")
    assert {row.weight for row in weigh(both, {problem.problem_id: 0.5 for problem in both})} == {
        1.0
    }


def test_rare_groups_gain_share_but_never_exceed_common_ones() -> None:
    common, rare = (
        easy(90, "common"),
        [replace(problem, style="stdio") for problem in easy(10, "rare")],
    )
    weights = weigh(
        [*common, *rare],
        {problem.problem_id: 0.9 if problem in rare else 0.1 for problem in [*common, *rare]},
    )
    share = {
        (axis, group): (before, after)
        for axis, group, _, before, after in shares([*common, *rare], weights)
    }
    before, after = share["tag", "rare"]
    assert before == pytest.approx(0.1)
    assert 0.2 < after <= 0.5
    assert share["style", "stdio"] == share["tag", "rare"]


def test_a_measured_pass_rate_decides_the_difficulty_level() -> None:
    [one] = weigh(easy(1, "a"), {"toy/a0": 0.1}, {"toy/a0": 0.0})
    assert one.measured
    assert one.level == LEVELS
    assert level(0.0) == 1


def test_only_training_problems_have_weights(tmp_path: Path) -> None:
    other = [replace(problem, problem_id="toy/x", split="validation") for problem in easy(1, "b")]
    weights = weigh([*easy(2, "a"), *other], {"toy/a0": 0.1, "toy/a1": 0.2, "toy/x": 0.3})
    write_weights(weights, tmp_path / "weights.parquet")
    assert read_weights(tmp_path / "weights.parquet") == weights
    assert len(weights) == 2
