"""Contributions of settings: intervals cover the truth as stated, and are None without data."""

from __future__ import annotations

import random

import pytest

from evaluation.reports.ablation import contribution


def runs(
    draw: random.Random, seeds: int, tasks: int, share: float, spread: float
) -> list[list[float]]:
    """Make runs with a separate solved share for each seed."""
    own = [min(1.0, max(0.0, draw.gauss(share, spread))) for _ in range(seeds)]
    return [[float(draw.random() < each) for _ in range(tasks)] for each in own]


def test_the_difference_is_baseline_minus_changed() -> None:
    result = contribution([[1, 1, 1, 0], [1, 1, 0, 0]], [[1, 0, 0, 0], [1, 0, 0, 0]])
    assert (result.baseline, result.changed, result.difference, result.seeds, result.tasks) == (
        0.625,
        0.25,
        0.375,
        2,
        4,
    )


def test_several_seeds_give_a_wider_interval_than_one() -> None:
    draw = random.Random(2)
    before, after = runs(draw, 3, 80, 0.6, 0.15), runs(draw, 3, 80, 0.5, 0.15)
    alone, all_seeds = (
        contribution(before[:1], after[:1]).interval,
        contribution(before, after).interval,
    )
    assert alone
    assert all_seeds
    assert all_seeds.high - all_seeds.low > alone.high - alone.low


def test_equal_runs_show_no_contribution() -> None:
    result = contribution([[1, 0, 1]] * 2, [[1, 0, 1]] * 2)
    assert result.difference == 0
    assert result.interval is None
    assert not result.significant
    alone = contribution([[1, 0, 1]], [[1, 0, 1]])
    assert alone.interval is not None
    assert alone.interval.low < -0.3
    assert alone.interval.high > 0.3
    assert not alone.significant


def test_runs_over_other_tasks_are_refused() -> None:
    with pytest.raises(ValueError, match="same seeds and tasks"):
        contribution([[1, 0]], [[1, 0, 1]])


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_a_false_contribution_is_shown_at_most_once_in_twenty(seeds: int) -> None:
    draw, wrong = random.Random(seeds), 0
    for number in range(400):
        before, after = (runs(draw, seeds, 60, 0.5, 0.08) for _ in range(2))
        wrong += contribution(before, after, draws=400, seed=number).significant
    assert wrong <= 32  # of 400; at a rate of 5 %, more occur once in 500 times
