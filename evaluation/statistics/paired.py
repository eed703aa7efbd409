"""Two models on the same tasks: their difference, non-inferiority, and the gain that so many tasks
can show.

In: counts of tasks won and lost, or a difference for each task (after minus before). Out: an
interval, a p-value, a smallest gain. Shares are in [0, 1]. `paired_test` and the functions after it
choose by `TestName`: for one completion per task McNemar's and Tango's tests, for several (pass@k)
or related tasks sign flips and Gaffke's interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist
from typing import Literal

import numpy as np

from evaluation.statistics.bounded_mean import Clusters, chance_at_most, mean_interval
from evaluation.statistics.hypothesis_tests import (
    Floats,
    Interval,
    PValues,
    first_gain,
    mcnemar,
    power,
)
from evaluation.statistics.sign_flips import sign_flip_test

NORMAL = NormalDist()
TestName = Literal["mcnemar", "sign_flips", "cluster_sign_flips"]


def difference_interval(won: int, lost: int, tasks: int, confidence: float = 0.95) -> Interval:
    """Return the interval of a difference of two shares on the same tasks, (won - lost) / tasks:
    the differences that Tango's score test does not reject.

    Reliable if hardly any task changes: none of 164 changed gives -2.3 to +2.3 points; a bootstrap
    gives 0 to 0. Source: Tango 1998, Statistics in Medicine 17:891.
    """
    z, difference = NORMAL.inv_cdf(0.5 + confidence / 2), (won - lost) / tasks
    return Interval(
        _crossing(won, lost, tasks, difference, -1.0, z),
        _crossing(won, lost, tasks, difference, 1.0, -z),
    )


def not_worse(won: int, lost: int, tasks: int, margin: float) -> float:
    """Return the p-value of "the share fell by the margin or more", by Tango's score test: a small
    value rules such a fall out.

    margin: in (0, 1). At most alpha exactly if the interval of confidence 1 - 2 * alpha is above
    -margin.
    """
    if not 0 < margin < 1:
        raise ValueError(f"`margin` must be in (0, 1), got {margin}: 0.03 is three points")
    return 1 - NORMAL.cdf(_score(won, lost, tasks, -margin))


def choose_test(single: bool, clusters: Clusters) -> TestName:
    """Return the test for these tasks. single: one completion a task on both sides, and pass@1."""
    if clusters is not None:
        return "cluster_sign_flips"
    return "mcnemar" if single else "sign_flips"


def paired_test(test: TestName, differences: Sequence[float], clusters: Clusters = None) -> PValues:
    """Return the p-values of "better" and "worse" by this test. differences: after minus before."""
    if test == "mcnemar":
        return mcnemar(*_counts(differences))
    return sign_flip_test(differences, clusters)


def paired_interval(
    test: TestName, differences: Sequence[float], clusters: Clusters = None
) -> Interval:
    """Return the 95 % interval of the mean difference that belongs to this test."""
    if test == "mcnemar":
        return difference_interval(*_counts(differences), len(differences))
    return mean_interval(differences, -1.0, 1.0, clusters)


def paired_not_worse(
    test: TestName, differences: Sequence[float], margin: float, clusters: Clusters = None
) -> float:
    """Return the p-value of "the mean fell by the margin or more" that belongs to this test."""
    if test == "mcnemar":
        return not_worse(*_counts(differences), len(differences), margin)
    return chance_at_most(differences, -margin, -1.0, clusters)


def _counts(differences: Sequence[float]) -> tuple[int, int]:
    return sum(d > 0 for d in differences), sum(d < 0 for d in differences)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return adjusted p-values of several tests: all below alpha hold with a joint error of at most
    alpha, whatever their dependence.

    Source: Holm 1979, Scandinavian Journal of Statistics 6:65.
    """
    adjusted, running = [0.0] * len(p_values), 0.0
    for rank, at in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[at]))
        adjusted[at] = running
    return adjusted


def mean_power(
    gain: float, spread: float, tasks: int, alpha: float, units: int | None = None
) -> float:
    """Return the power of the one-sided test of a mean difference: Phi(gain * sqrt(tasks) / spread
    - t(1 - alpha)), with Student's quantile for so many clusters (units), else the normal one.

    spread: standard deviation of a task's difference; `clustered_spread` if tasks are related.
    """
    if spread == 0:
        return float(gain > 0)
    return NORMAL.cdf(gain * sqrt(tasks) / spread - _quantile(alpha, units))


def smallest_mean_gain(
    spread: float, tasks: int, alpha: float, target_power: float = 0.8, units: int | None = None
) -> float:
    """Return the true gain that so many tasks show with the target power: (t(1 - alpha) +
    z(power)) * spread / sqrt(tasks). Arguments are those of `mean_power`.
    """
    return (_quantile(alpha, units) + NORMAL.inv_cdf(target_power)) * spread / sqrt(tasks)


def _quantile(alpha: float, units: int | None) -> float:
    if units is None:
        return NORMAL.inv_cdf(1 - alpha)
    from scipy.stats import t

    return float(t.ppf(1 - alpha, max(1, units - 1)))


def clustered_spread(values: Sequence[float] | Floats, clusters: Clusters) -> float:
    """Return the standard deviation that independent tasks would need for the same error of the
    mean: of clusters, sqrt(G / (G - 1) * sum(r ** 2) / tasks) with r the sum of a cluster's
    deviations from the mean.

    Source: Liang & Zeger 1986, Biometrika 73:13, for a mean.
    """
    table = np.asarray(values, dtype=float)
    if clusters is None:
        return float(np.std(table))
    _, which = np.unique(np.asarray(clusters, dtype=str), return_inverse=True)
    sums = np.bincount(which, weights=table - table.mean())
    return sqrt(len(sums) / max(1, len(sums) - 1) * float(sums @ sums) / len(table))


def expected_spread(values: Sequence[float] | Floats, gain: float = 0.0) -> float:
    """Return the expected spread of a task's difference before a challenger is evaluated, if it is
    better by the gain.

    values: the champion's estimate of each task, in [0, 1]. It is assumed that on half of the tasks
    both agree except for the gain, and are independent on the others. Exact for one completion per
    task, an upper bound for several: the variance is m * (1 - m) + gain * (1 - m) - gain ** 2, m
    being the mean, with var(values) for m * (1 - m).
    """
    mean = float(np.mean(values))
    return sqrt(max(0.0, float(np.var(values)) + gain * (1 - mean) - gain**2))


def announced_mean_gain(
    values: Sequence[float], alpha: float, target_power: float = 0.8, clusters: Clusters = None
) -> float | None:
    """Return the smallest gain that a test of means shows with the target power, at the expected
    spread; to a tenth of a point, or None. The differences of related tasks are expected to be as
    alike as the champion's values are.
    """
    plain, units = float(np.std(values)), None if clusters is None else len(set(clusters))
    wider = max(1.0, clustered_spread(values, clusters) / plain) if plain else 1.0
    gains = (step / 1000 for step in range(1, 1001 - round(1000 * float(np.mean(values)))))
    return next(
        (
            gain
            for gain in gains
            if mean_power(gain, wider * expected_spread(values, gain), len(values), alpha, units)
            >= target_power
        ),
        None,
    )


def announced_share_gain(
    solved: int, tasks: int, alpha: float, target_power: float = 0.8
) -> float | None:
    """Return the same for one completion per task, by the exact power of McNemar's test."""
    values = [1.0] * solved + [0.0] * (tasks - solved)

    def shown(step: int) -> bool:
        gain = step / 1000
        changed = min(1.0, max(gain, expected_spread(values, gain) ** 2 + gain**2))
        return power(gain, changed, tasks, alpha) >= target_power

    return first_gain(1000 - round(1000 * solved / tasks), shown)


def _score(won: int, lost: int, tasks: int, difference: float) -> float:
    """Return Tango's statistic of "the true difference is this one"; the best-fitting share of lost
    tasks enters the variance.
    """
    a, b, c = (
        2 * tasks,
        -won - lost + (2 * tasks - won + lost) * difference,
        -lost * difference * (1 - difference),
    )
    losing = (sqrt(max(0.0, b * b - 4 * a * c)) - b) / (2 * a)
    variance = tasks * (2 * losing + difference * (1 - difference))
    away = won - lost - tasks * difference
    return 0.0 if away == 0 else away / sqrt(variance) if variance > 0 else float("inf") * away


def _crossing(won: int, lost: int, tasks: int, inside: float, outside: float, z: float) -> float:
    """Return where, between an accepted difference and the end of the scale, the statistic passes
    z; by bisection, it is monotone.
    """
    for _ in range(60):
        middle = (inside + outside) / 2
        rejected = (
            _score(won, lost, tasks, middle) > z if z > 0 else _score(won, lost, tasks, middle) < z
        )
        inside, outside = (inside, middle) if rejected else (middle, outside)
    return inside
