"""The statistics of the gate agree with scipy and with simulated error rates."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from evaluation.statistics.hypothesis_tests import (
    LARGE,
    fisher_fall,
    mcnemar,
    power,
    smallest_gain,
    tasks_for_gain,
    tasks_to_show,
    wilson,
)
from evaluation.statistics.pass_at_k import pass_at_k

shares = st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(shares, st.sampled_from([0.9, 0.95, 0.99]))
def test_wilson_agrees_with_scipy(counts: tuple[int, int], confidence: float) -> None:
    theirs = stats.binomtest(*counts).proportion_ci(confidence, method="wilson")
    assert wilson(*counts, confidence) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


@given(shares)
def test_an_interval_contains_its_share_within_0_and_1(counts: tuple[int, int]) -> None:
    low, high = wilson(*counts)
    assert 0 <= low <= counts[0] / counts[1] <= high <= 1


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5, 0.8, 0.95])
def test_the_interval_covers_the_true_share(share: float) -> None:
    solved = np.random.default_rng(0).binomial(400, share, 4000)
    covered = [(interval := wilson(int(s), 400)).low <= share <= interval.high for s in solved]
    assert np.mean(covered) >= 0.93


@given(st.integers(0, 200), st.integers(0, 200))
def test_mcnemar_agrees_with_the_binomial_test_of_scipy(won: int, lost: int) -> None:
    ours = mcnemar(won, lost)
    if won + lost == 0:
        assert ours == (1, 1, 1)
        return
    assert ours.better == pytest.approx(
        stats.binomtest(won, won + lost, alternative="greater").pvalue
    )
    assert ours.worse == pytest.approx(stats.binomtest(won, won + lost, alternative="less").pvalue)
    assert ours.two_sided == pytest.approx(stats.binomtest(won, won + lost).pvalue)


@given(shares, shares)
def test_fisher_fall_agrees_with_scipy(before: tuple[int, int], after: tuple[int, int]) -> None:
    table = [[before[0], before[1] - before[0]], [after[0], after[1] - after[0]]]
    assert fisher_fall(*before, *after) == pytest.approx(
        stats.fisher_exact(table, alternative="greater").pvalue, rel=1e-6
    )


def test_the_stated_power_agrees_with_simulation() -> None:
    rng = np.random.default_rng(0)
    detected = 0
    for won, lost, _ in rng.multinomial(400, [0.2, 0.1, 0.7], size=1000):
        detected += mcnemar(int(won), int(lost)).better <= 0.01
    assert detected / 1000 == pytest.approx(power(0.1, 0.3, 400, 0.01), abs=0.04)


@settings(max_examples=30)
@given(st.integers(5, 500), st.floats(0, 1))
def test_the_smallest_gain_has_exactly_the_required_power(tasks: int, discordant: float) -> None:
    gain = smallest_gain(discordant, tasks, 0.05)
    assert gain is not None
    assert power(gain, max(gain, discordant), tasks, 0.05) >= 0.8
    less = gain - 0.001
    # The exact power is not quite monotone in the gain.
    assert less <= 0 or power(less, max(less, discordant), tasks, 0.05) < 0.8 + 1e-3


@pytest.mark.parametrize(
    ("gain", "discordant", "alpha"),
    [
        (0.02, 0.025, 0.01),
        (0.02, 0.0, 0.01),
        (0.02, 0.2, 0.01),
        (0.1, 0.3, 0.05),
        (0.05, 0.1, 0.01),
    ],
)
def test_the_required_tasks_give_about_80_percent_power(
    gain: float, discordant: float, alpha: float
) -> None:
    tasks = tasks_for_gain(gain, discordant, alpha)
    # The number of tasks is an approximation, documented as "about".
    assert 0.75 <= power(gain, max(gain, discordant), tasks, alpha) <= 0.9


def test_four_tasks_cannot_show_a_gain_at_one_percent() -> None:
    assert smallest_gain(0.3, 4, 0.01) is None


@given(st.lists(shares, min_size=1, max_size=20))
def test_pass_at_1_is_the_mean_share(counts: list[tuple[int, int]]) -> None:
    correct, drawn = zip(*counts, strict=True)
    assert pass_at_k(correct, drawn, 1) == pytest.approx(np.mean([c / n for c, n in counts]))


def test_pass_at_k_equals_the_share_of_correct_subsets() -> None:
    from itertools import combinations

    completions = [1, 1, 0, 0, 0, 0]
    subsets = list(combinations(completions, 3))
    assert pass_at_k([2], [6], 3) == pytest.approx(sum(any(s) for s in subsets) / len(subsets))


def test_too_few_completions_raise() -> None:
    with pytest.raises(ValueError, match=r"pass@10.*\b10\b.*problem 1 has 4"):
        pass_at_k([1, 1], [10, 4], 10)


@pytest.mark.parametrize("gain", [0.05, 0.1, 0.3, 1.0])
def test_one_hundredth_fewer_tasks_show_the_gain_too_rarely(gain: float) -> None:
    tasks = tasks_to_show(gain, 0.3, 0.025)
    fewer = tasks - ceil(tasks / 50) - 1
    assert power(gain, max(gain, 0.3), tasks, 0.025) >= 0.8
    assert power(gain, max(gain, 0.3), fewer, 0.025) < 0.81


@pytest.mark.parametrize(("gain", "discordant"), [(0.02, 0.1), (0.03, 0.3), (0.0, 0.2), (1.0, 1.0)])
def test_power_has_no_jump_where_it_is_approximated(gain: float, discordant: float) -> None:
    exact, approximate = (power(gain, discordant, LARGE + more, 0.025) for more in (0, 1))
    assert exact == pytest.approx(approximate, abs=0.02)
