"""Weights make what is rare more frequent, within bounds, and leave nothing out."""

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
def test_every_problem_has_a_weight_above_zero_and_the_mean_is_one(
    drawn: list[tuple[Problem, float]],
) -> None:
    hard = {problem.problem_id: difficulty for problem, difficulty in drawn}
    found = weigh([problem for problem, _ in drawn], hard)
    assert sum(row.weight for row in found) == pytest.approx(len(drawn), abs=1e-3)
    assert max(row.weight for row in found) <= CAP**2 * min(row.weight for row in found) + 1e-3
    assert weigh([problem for problem, _ in drawn[::-1]], hard) == found


def test_a_set_that_is_balanced_already_keeps_weights_of_one() -> None:
    both = easy(10, "a") + easy(10, "b")
    assert {row.weight for row in weigh(both, {problem.problem_id: 0.5 for problem in both})} == {
        1.0
    }


def test_the_rare_come_more_often_and_never_more_often_than_the_common() -> None:
    common, rare = (
        easy(90, "common"),
        [replace(problem, style="stdio") for problem in easy(10, "rare")],
    )
    found = weigh(
        [*common, *rare],
        {problem.problem_id: 0.9 if problem in rare else 0.1 for problem in [*common, *rare]},
    )
    share = {
        (axis, group): (before, after)
        for axis, group, _, before, after in shares([*common, *rare], found)
    }
    before, after = share["tag", "rare"]
    assert (
        before == pytest.approx(0.1)
        and 0.2 < after <= 0.5
        and share["style", "stdio"] == share["tag", "rare"]
    )


def test_what_was_measured_decides_the_level_of_difficulty() -> None:
    [one] = weigh(easy(1, "a"), {"toy/a0": 0.1}, {"toy/a0": 0.0})
    assert one.measured and one.level == LEVELS and level(0.0) == 1


def test_only_the_training_part_is_weighed_and_weights_come_back_from_disk(tmp_path: Path) -> None:
    other = [replace(problem, problem_id="toy/x", split="validation") for problem in easy(1, "b")]
    found = weigh([*easy(2, "a"), *other], {"toy/a0": 0.1, "toy/a1": 0.2, "toy/x": 0.3})
    write_weights(found, tmp_path / "weights.parquet")
    assert read_weights(tmp_path / "weights.parquet") == found and len(found) == 2
