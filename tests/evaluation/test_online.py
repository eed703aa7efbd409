"""Statistics of live traffic agree with their definitions, with other implementations, and with
simulated error rates.
"""

from __future__ import annotations

from itertools import pairwise
from math import exp, log, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evaluation.statistics.alpha_spending import level_at
from evaluation.statistics.online.confidence_sequence import (
    BETS,
    log_capital,
    mean_sequence,
    p_value,
    pairs_needed,
)
from evaluation.statistics.online.pairs import concurrent_pairs
from evaluation.statistics.online.sample_ratio import sample_ratio_p_value
from evaluation.statistics.online.welch import observations_needed, welch_test

shares = st.lists(st.floats(0, 1), min_size=1, max_size=40)
means = st.floats(0.01, 0.99)


@given(shares, means)
def test_the_capital_is_the_mean_of_the_bets_products(values: list[float], mean: float) -> None:
    expected = np.mean([prod(1 - g + g * x / mean for x in values) for g in BETS])
    assert log_capital(values, mean)[-1] == pytest.approx(log(expected), rel=1e-9, abs=1e-9)


@given(shares, means, means)
def test_more_capital_is_won_against_a_smaller_mean(
    values: list[float], one: float, two: float
) -> None:
    low, high = sorted((one, two))
    assert p_value(values, low) <= p_value(values, high) + 1e-12


@given(shares)
def test_an_interval_of_means_contains_the_observed_mean(values: list[float]) -> None:
    low, high = mean_sequence(values)
    assert low <= np.mean(values) <= high


@given(st.lists(st.integers(0, 4096), max_size=60))
def test_an_interval_ends_where_a_p_value_reaches_half_of_alpha(cells: list[int]) -> None:
    values = np.array(cells) / 4096
    low, _ = mean_sequence(values, alpha=0.1)
    if low > 1e-9:
        assert log_capital(values, low)[-1] == pytest.approx(log(20), abs=1e-6)


@given(shares, st.floats(-50, 50), st.floats(0.1, 100))
def test_an_interval_scales_with_the_range(values: list[float], low: float, width: float) -> None:
    interval = mean_sequence(values)
    scaled = mean_sequence(low + width * np.clip(values, 0, 1), low, low + width + 1e-9)
    cell = 2 * width / 4096
    assert scaled.low == pytest.approx(low + width * interval.low, abs=cell)
    assert scaled.high == pytest.approx(low + width * interval.high, abs=cell)


# Interval and p-value of the package ville 0.1.0 (BettingCS, BettingTest at half of the rate) on
# default_rng(7).random(2000) < rate, for the rates 0.02, 0.1 and 0.5 in this order.
VILLE = [
    (0.02, (0.0110, 0.0277), 0.01145),
    (0.1, (0.0737, 0.1268), 4.648e-06),
    (0.5, (0.4843, 0.5822), 1.617e-22),
]


def test_intervals_are_as_narrow_as_those_of_ville() -> None:
    rng = np.random.default_rng(7)
    for rate, theirs, chance in VILLE:
        values = (rng.random(2000) < rate).astype(float)
        low, high = mean_sequence(values)
        assert low < theirs[1]
        assert high > theirs[0]
        assert 0.6 < (high - low) / (theirs[1] - theirs[0]) < 1.35, rate
        assert log(p_value(values, rate / 2)) < 0.5 * log(chance), rate


@pytest.mark.parametrize("mean", [0.01, 0.3, 0.5])
def test_a_confidence_sequence_covers_the_mean_at_all_moments(mean: float) -> None:
    """Wrong at any of 1,000 moments in at most 10 % of 300 sequences (each side 5 %)."""
    rng = np.random.default_rng(11)
    values = (rng.random((300, 1000)) < mean).astype(float)
    above = log_capital(values, mean).max(1) >= log(20)
    below = log_capital(1 - values, 1 - mean).max(1) >= log(20)
    assert (above | below).mean() <= 0.1
    assert above.mean() <= 0.05 + 2 * 0.0126  # two standard errors
    assert below.mean() <= 0.05 + 2 * 0.0126


def test_a_fixed_test_that_is_peeked_at_exceeds_its_level() -> None:
    """The simulation can fail: an ordinary test at every tenth value is wrong far too often."""
    rng = np.random.default_rng(11)
    values = (rng.random((1000, 2000)) < 0.3).astype(float)
    counts = np.arange(100, 2001, 10)
    rates = values.cumsum(1)[:, counts - 1] / counts
    scores = (rates - 0.3) / np.sqrt(0.3 * 0.7 / counts)
    assert (scores > 1.645).any(1).mean() > 0.15


def test_the_planned_number_of_pairs_shows_the_difference_about_half_of_the_time() -> None:
    rng = np.random.default_rng(3)
    needed = pairs_needed(0.1, 0.42, 0.05)
    errors = [rng.random((400, needed)) < rate for rate in (0.1, 0.2)]
    differences = errors[1].astype(float) - errors[0]
    shown = log_capital((differences + 1) / 2, 0.5).max(1) >= log(20)
    assert 0.4 < shown.mean() < 0.95


def test_values_outside_of_their_range_are_refused() -> None:
    with pytest.raises(ValueError, match=r"value 1 is 1\.2"):
        mean_sequence([0.5, 1.2])
    with pytest.raises(ValueError, match="value 0 is nan"):
        p_value([float("nan")], 0.5)


@given(st.lists(st.booleans(), max_size=300), st.floats(0.05, 0.95))
def test_each_observation_is_in_one_pair_of_neighbours(arms: list[bool], share: float) -> None:
    values = np.arange(len(arms), dtype=float)
    pairs = concurrent_pairs(arms, values, share)
    reach = 10 * (round(1 / min(share, 1 - share)) + 1)
    assert (np.abs(pairs.differences) <= reach).all()
    assert (np.diff(pairs.closed) > 0).all()
    assert pairs.closed.max(initial=-1) < len(arms)


def test_a_trend_of_the_traffic_cancels_in_pairs() -> None:
    """Latency doubles while the challenger gets less than its planned share, as with few users."""
    rng = np.random.default_rng(5)
    arms = rng.random(40_000) < 0.006
    values = np.linspace(1, 2, 40_000)
    pairs = concurrent_pairs(arms, values, 0.01)
    assert len(pairs.differences) > 150
    assert abs(pairs.differences.mean()) < 0.03


@pytest.mark.parametrize("share", [0.01, 0.05, 0.25, 0.5, 0.75, 0.95])
def test_few_observations_of_the_rarer_arm_are_wasted(share: float) -> None:
    rng = np.random.default_rng(6)
    arms = rng.random(40_000) < share
    rare = min(arms.sum(), (~arms).sum())
    assert len(concurrent_pairs(arms, np.zeros(40_000), share).closed) > 0.88 * rare


def test_nothing_is_compared_without_both_arms() -> None:
    with pytest.raises(ValueError, match="nothing to compare"):
        concurrent_pairs([True], [1.0], 1.0)
    assert not len(concurrent_pairs([True, True], [1.0, 0.0], 0.5).differences)


def test_welch_compares_the_challenger_with_the_champion() -> None:
    result = welch_test([0.0, 0.1, 0.2, 0.1], [1.0, 1.2, 1.4])
    assert result.difference == pytest.approx(1.1)
    assert result.interval.low < 1.1 < result.interval.high
    assert result.p_value < 0.01


def test_welch_needs_two_values_and_a_spread() -> None:
    with pytest.raises(ValueError, match="two values"):
        welch_test([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="no spread"):
        welch_test([1.0, 1.0], [2.0, 2.0])


def test_the_planned_sample_gives_the_planned_power() -> None:
    """10 % against 15 %: one-sided 5 %, power 80 %, as simulated with Welch's test."""
    spread = (0.5 * (0.1 * 0.9 + 0.15 * 0.85)) ** 0.5
    needed = observations_needed(0.05, spread)
    rng = np.random.default_rng(4)
    found = [
        (test := welch_test(*(rng.random((2, needed // 2)) < [[0.1], [0.15]]))).difference > 0
        and test.p_value <= 0.1
        for _ in range(1000)
    ]
    assert np.mean(found) == pytest.approx(0.8, abs=0.04)


def test_a_sample_size_agrees_with_the_published_example() -> None:
    """z(0.95) + z(0.8) = 2.486: 25 an arm for a difference of 0.7 spreads (Lehr's 16 / d**2 at 5 %
    two-sided is 33, times (2.486 / 2.802)**2).
    """
    assert observations_needed(0.7, 1.0) / 2 == pytest.approx(33 * (2.486 / 2.802) ** 2, rel=0.03)


def test_a_sample_ratio_agrees_with_its_definition() -> None:
    """One observation: the capital is its expected share under the prior over its share, 1."""
    assert sample_ratio_p_value([([1, 0], [0.3, 0.7])]) == pytest.approx(1)
    prior = stats.betabinom(10, 50, 50).pmf(9) / stats.binom(10, 0.5).pmf(9)
    assert sample_ratio_p_value([([9, 1], [0.5, 0.5])]) == pytest.approx(min(1, 1 / prior))


def test_a_sample_ratio_watched_all_the_time_keeps_its_level() -> None:
    rng = np.random.default_rng(10)
    wrong = 0
    for _ in range(300):
        ones = (rng.random(2000) < 0.05).cumsum()
        p_values = [
            sample_ratio_p_value([([int(ones[n - 1]), n - int(ones[n - 1])], [0.05, 0.95])])
            for n in range(50, 2001, 50)
        ]
        wrong += min(p_values) <= 0.05
    assert wrong / 300 <= 0.05 + 2 * 0.0126


def test_a_fifth_of_lost_requests_is_a_sample_ratio_mismatch() -> None:
    assert sample_ratio_p_value([([4000, 5000], [0.5, 0.5])]) < 1e-6
    with pytest.raises(ValueError, match="sum to 1"):
        sample_ratio_p_value([([1, 1], [0.5, 0.4])])


def test_the_levels_of_all_tests_sum_to_alpha() -> None:
    levels = [level_at(0.05, number) for number in range(1, 20_001)]
    tail = 0.05 * 20_000.5**-0.6 / 0.6 / stats.zipf.pmf(1, 1.6) ** -1
    assert sum(levels) + tail == pytest.approx(0.05, rel=1e-3)
    assert all(a > b for a, b in pairwise(levels))
    with pytest.raises(ValueError, match="at least 1"):
        level_at(0.05, 0)


def test_the_p_value_is_that_of_the_best_moment() -> None:
    good = [1.0] * 20
    assert p_value(good + [0.0] * 50, 0.5) == pytest.approx(p_value(good, 0.5))
    assert p_value(good, 0.5) == pytest.approx(exp(-log_capital(good, 0.5)[-1]))
    assert p_value([], 0.5) == 1.0
