"""Paired statistics agree with their definitions, with scipy, and with simulated error rates."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from evaluation.statistics.alpha_spending import Gate, Spending, next_level
from evaluation.statistics.hypothesis_tests import clopper_pearson, share_interval
from evaluation.statistics.paired import (
    difference_interval,
    expected_spread,
    holm,
    mean_power,
    not_worse,
    smallest_mean_gain,
)
from evaluation.statistics.pass_at_k import curve, pass_at_k
from evaluation.statistics.seeds import compare_recipes

changes = st.integers(2, 300).flatmap(
    lambda n: st.tuples(st.integers(0, n // 2), st.integers(0, n // 2), st.just(n))
)


def gate(p_value: float, level: float = 0.0) -> Gate:
    return Gate(run_id="", benchmark="b", benchmark_version="1", p_value=p_value, level=level)


@given(
    st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    st.sampled_from([0.9, 0.95, 0.99]),
)
def test_clopper_pearson_agrees_with_scipy(counts: tuple[int, int], confidence: float) -> None:
    theirs = stats.binomtest(*counts).proportion_ci(confidence, method="exact")
    assert clopper_pearson(*counts, confidence) == pytest.approx(
        (theirs.low, theirs.high), abs=1e-9
    )


@pytest.mark.parametrize("tasks", [10, 20, 30, 50, 74, 100, 164, 200, 378])
def test_the_interval_of_a_share_has_its_exact_coverage(tasks: int) -> None:
    bounds = np.array([share_interval(solved, tasks) for solved in range(tasks + 1)])
    shares = np.linspace(0.05, 0.95, 361)
    chances = stats.binom.pmf(np.arange(tasks + 1)[:, None], tasks, shares)
    covered = (chances * ((bounds[:, :1] <= shares) & (shares <= bounds[:, 1:]))).sum(0)
    assert covered.min() >= 0.93


@given(changes, st.floats(0.01, 0.3))
def test_the_score_test_uses_the_constrained_likeliest_loss_share(
    counts: tuple[int, int, int], margin: float
) -> None:
    won, lost, tasks = counts

    def unlikely(losing: float) -> float:
        winning, same = losing - margin, 1 - 2 * losing + margin
        return -sum(
            k * log(max(p, 1e-300))
            for k, p in ((won, winning), (lost, losing), (tasks - won - lost, same))
            if k
        )

    best = optimize.minimize_scalar(
        unlikely, bounds=(margin, (1 + margin) / 2), method="bounded", options={"xatol": 1e-9}
    )
    variance = tasks * (2 * best.x - margin - margin**2)
    z = (won - lost + tasks * margin) / np.sqrt(variance)
    assert not_worse(won, lost, tasks, margin) == pytest.approx(stats.norm.sf(z), abs=2e-3)


@given(changes, st.floats(0.01, 0.3))
def test_test_and_interval_reject_the_same_margins(
    counts: tuple[int, int, int], margin: float
) -> None:
    low, _ = difference_interval(*counts, confidence=0.9)
    if abs(low + margin) > 1e-9:
        assert (not_worse(*counts, margin) <= 0.05) is (low > -margin)


@given(changes)
def test_swapping_the_models_mirrors_the_interval_of_the_difference(
    counts: tuple[int, int, int],
) -> None:
    won, lost, tasks = counts
    low, high = difference_interval(won, lost, tasks)
    assert -1 <= low <= (won - lost) / tasks <= high <= 1
    assert difference_interval(lost, won, tasks) == pytest.approx((-high, -low), abs=1e-9)


@pytest.mark.parametrize(("changed", "gain"), [(0.05, 0.0), (0.3, 0.0), (0.05, 0.05), (0.3, 0.05)])
def test_the_interval_of_a_difference_has_its_nominal_coverage(changed: float, gain: float) -> None:
    drawn = np.random.default_rng(0).multinomial(
        100, [(changed + gain) / 2, (changed - gain) / 2, 1 - changed], size=2000
    )
    covered = [
        (interval := difference_interval(int(w), int(lost), 100)).low <= gain <= interval.high
        for w, lost, _ in drawn
    ]
    assert np.mean(covered) >= 0.93


def test_a_loss_equal_to_the_margin_passes_at_most_alpha() -> None:
    # The true loss is 5 points.
    drawn = np.random.default_rng(1).multinomial(400, [0.05, 0.1, 0.85], size=4000)
    passed = np.mean([not_worse(int(won), int(lost), 400, 0.05) <= 0.05 for won, lost, _ in drawn])
    assert 0.03 <= passed <= 0.06


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_holm_lies_between_the_p_value_and_bonferroni(
    p_values: list[float],
) -> None:
    adjusted = holm(p_values)
    for p, a in zip(p_values, adjusted, strict=True):
        assert p <= a <= min(1.0, len(p_values) * p) or a == 1.0
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    assert [adjusted[i] for i in order] == sorted(adjusted)


def test_holm_on_a_worked_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_the_smallest_detectable_gain_has_the_required_power() -> None:
    gain = smallest_mean_gain(0.4, 200, 0.01)
    assert mean_power(gain, 0.4, 200, 0.01) == pytest.approx(0.8)
    assert expected_spread([1.0] * 50 + [0.0] * 50) ** 2 == pytest.approx(0.25)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 12), st.integers(12, 15)), min_size=2, max_size=30))
def test_a_curve_equals_pass_at_k_for_every_k(counts: list[tuple[int, int]]) -> None:
    correct, drawn = [c for c, _ in counts], [n for _, n in counts]
    points = curve(correct, drawn, draws=500)
    assert [at.k for at in points] == list(range(1, min(drawn) + 1))
    for at in points:
        assert at.share == pytest.approx(pass_at_k(correct, drawn, at.k), abs=1e-9)


def test_recipes_of_related_tasks_have_wider_intervals() -> None:
    rng = np.random.default_rng(3)
    solved = np.repeat(rng.random((2, 30)) < 0.5, 10, axis=1).astype(float)
    before, after = ([run.tolist()] * 3 for run in solved)
    alone = compare_recipes(before, after, draws=1000).interval
    related = compare_recipes(before, after, [str(i // 10) for i in range(300)], draws=1000)
    assert related.interval.high - related.interval.low > 1.5 * (alone.high - alone.low)


def test_recipes_of_several_seeds_are_compared_over_seeds_and_tasks() -> None:
    rng = np.random.default_rng(0)
    easy = rng.random(200)
    weak, strong = (
        [(rng.random(200) < easy * share).astype(float).tolist() for _ in range(4)]
        for share in (0.5, 0.8)
    )
    comparison = compare_recipes(weak, strong, draws=2000)
    assert comparison.runs == (4, 4)
    assert comparison.p_better < 0.01
    assert comparison.interval.low > 0
    with pytest.raises(ValueError, match="two runs"):
        compare_recipes(weak[:1], strong)
    with pytest.raises(ValueError, match=r"200 tasks.*150"):
        compare_recipes(weak, [run[:150] for run in strong])


@pytest.mark.parametrize("spending", ["lord", "saffron"])
def test_levels_without_a_gain_sum_to_less_than_the_rate(spending: Spending) -> None:
    gates: list[Gate] = []
    for _ in range(200):
        gates.append(gate(0.9, next_level(spending, 0.05, gates)))
    assert sum(g.level for g in gates) < 0.05


def test_saffron_spends_no_alpha_on_a_candidate_discovery() -> None:
    assert next_level("saffron", 0.05, [gate(0.2)] * 30) == next_level("saffron", 0.05, [])
    assert next_level("lord", 0.05, [gate(0.2)] * 30) < next_level("lord", 0.05, [])


P_VALUES = (0.2, 0.9, 0.001, 0.6, 0.004, 0.8, 0.3, 0.0001, 0.7, 0.02)
# Computed with online-fdr 1.0.0: Saffron(0.05, 0.025, 0.5), and LordPlusPlus(0.05, 0.025) with
# Saffron's shares.
LEVELS: dict[Spending, tuple[float, ...]] = {
    "saffron": (
        0.0054686270725, 0.0054686270725, 0.0018039741708076409, 0.0072726012433076415,
        0.0027469146950135116, 0.0027469146950135116, 0.0015380300715085342, 0.0015380300715085342,
        0.012475284216508535, 0.004619452827555262,
    ),
    "lord": (
        0.010937254145, 0.0036079483416152818, 0.001885881048411741, 0.012127433239605329,
        0.004440778218889914, 0.024382498078950734, 0.008892204677195002, 0.004997204656740178,
        0.025202152570628387, 0.009642416739986913,
    ),
}  # fmt: skip


@pytest.mark.parametrize("spending", ["saffron", "lord"])
def test_levels_equal_those_of_another_implementation(spending: Spending) -> None:
    gates: list[Gate] = []
    for p in P_VALUES:
        gates.append(gate(p, next_level(spending, 0.05, gates)))
    assert [g.level for g in gates] == pytest.approx(LEVELS[spending], rel=1e-8)
