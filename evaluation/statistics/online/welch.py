"""Welch's t-test of two arms at a fixed horizon, and its sample size in advance.

In: the values of both arms. Out: the difference (challenger minus champion), its interval and
p-value. They hold for one look at a sample size that was fixed in advance. For repeated looks use
`confidence_sequence`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from evaluation.statistics.hypothesis_tests import Floats, Interval

NORMAL = NormalDist()


class Welch(NamedTuple):
    """The result of Welch's t-test.

    p_value: two-sided. degrees: of freedom of Student's t.
    """

    difference: float
    interval: Interval
    p_value: float
    degrees: float


def welch_test(champion: Sequence[float] | Floats, challenger: Sequence[float] | Floats) -> Welch:
    """Compare two means without assuming equal variances. The interval has 95 %.

    Raises ValueError for an arm with fewer than two values, or if no value differs.
    Source: Welch 1947, Biometrika 34:28.
    """
    from scipy.stats import ttest_ind

    arms = [np.asarray(values, dtype=float) for values in (champion, challenger)]
    if min(map(len, arms)) < 2:
        raise ValueError(f"each arm needs two values, got {len(arms[0])} and {len(arms[1])}")
    if not any(values.var() for values in arms):
        raise ValueError("all values of each arm are equal: the t-test has no spread to use")
    result = ttest_ind(arms[1], arms[0], equal_var=False)
    low, high = result.confidence_interval(0.95)
    return Welch(
        float(arms[1].mean() - arms[0].mean()),
        Interval(float(low), float(high)),
        float(result.pvalue),
        float(result.df),
    )


def observations_needed(
    difference: float,
    spread: float,
    *,
    share: float = 0.5,
    alpha: float = 0.05,
    target_power: float = 0.8,
) -> int:
    """Return how many observations of both arms together show a true difference once.

    spread: standard deviation of one value, such as sqrt(p * (1 - p)) of a rate. share: of the
    challenger, in (0, 1). alpha: one-sided. The normal approximation:
    ((z(1 - alpha) + z(power)) * spread / difference)**2 / (share * (1 - share)).
    Raises ValueError unless difference > 0 and 0 < share < 1.
    Source: Chow, Shao & Wang 2008, Sample Size Calculations in Clinical Research, 3.2.1.
    """
    if difference <= 0 or not 0 < share < 1:
        raise ValueError(
            f"`difference` must be above 0 and `share` in (0, 1), got {difference} and {share}"
        )
    reach = NORMAL.inv_cdf(1 - alpha) + NORMAL.inv_cdf(target_power)
    return ceil((reach * spread / difference) ** 2 / (share * (1 - share)))
