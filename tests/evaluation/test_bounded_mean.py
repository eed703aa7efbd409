"""Intervals of bounded means agree with Clopper and Pearson, and cover near 0 and 1."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.statistics.bounded_mean import chance_at_most, mean_interval
from evaluation.statistics.hypothesis_tests import clopper_pearson

shares = st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
values = st.lists(st.floats(-1, 1), min_size=1, max_size=40)


@settings(max_examples=15, deadline=None)
@given(shares)
def test_of_zeros_and_ones_it_is_clopper_and_pearson(counts: tuple[int, int]) -> None:
    solved, tasks = counts
    ours = mean_interval([1.0] * solved + [0.0] * (tasks - solved))
    exact = clopper_pearson(solved, tasks)
    error = 0.06 * (exact.high - exact.low)  # of 10,000 draws
    assert ours == pytest.approx(exact, abs=error)


@settings(max_examples=30, deadline=None)
@given(values)
def test_an_interval_holds_the_mean_within_the_range(values: list[float]) -> None:
    low, high = mean_interval(values, -1.0, 1.0)
    assert -1 <= low <= np.mean(values) + 1e-9
    assert np.mean(values) - 1e-9 <= high <= 1


@settings(max_examples=20, deadline=None)
@given(values, st.floats(-0.9, 0.9))
def test_the_p_value_agrees_with_the_lower_limit(values: list[float], mean: float) -> None:
    low, _ = mean_interval(values, -1.0, 1.0)
    if abs(low - mean) > 1e-9:
        assert (chance_at_most(values, mean, -1.0) <= 0.025 + 2e-4) is (low > mean)


@given(values)
def test_clusters_of_one_task_change_nothing(values: list[float]) -> None:
    alone = mean_interval(values, -1.0, 1.0, draws=200)
    each = mean_interval(values, -1.0, 1.0, [str(i) for i in range(len(values))], draws=200)
    assert alone == each


@pytest.mark.parametrize("share", [0.02, 0.5, 0.98])
def test_intervals_of_wholly_related_tasks_count_clusters(share: float) -> None:
    rng, clusters = np.random.default_rng(1), [str(i // 20) for i in range(400)]
    covered = 0
    for _ in range(60):
        solved = np.repeat(rng.random(20) < share, 20).astype(float)
        low, high = mean_interval(solved, clusters=clusters, draws=1000)
        covered += low <= share <= high
    assert covered >= 53  # 95 % of 60 less three standard errors


@pytest.mark.parametrize(("share", "tasks"), [(0.1, 20), (0.98, 164)])
def test_intervals_of_a_mean_cover_it_where_the_bootstrap_does_not(
    share: float, tasks: int
) -> None:
    rng, covered, resampled = np.random.default_rng(0), [], []
    rare = min(share, 1 - share) / 4  # few tasks differ from the others
    for _ in range(150):
        differs = (rng.random(tasks) < rare).astype(float)
        solved = differs if share < 0.5 else 1 - differs
        truth = rare if share < 0.5 else 1 - rare
        low, high = mean_interval(solved, draws=300)
        covered.append(low <= truth <= high)
        means = solved[rng.integers(tasks, size=(200, tasks))].mean(1)
        resampled.append(np.quantile(means, 0.025) <= truth <= np.quantile(means, 0.975))
    assert np.mean(covered) >= 0.93
    assert np.mean(resampled) < 0.9


def test_no_tasks_have_no_interval() -> None:
    with pytest.raises(ValueError, match="no tasks"):
        mean_interval([])
