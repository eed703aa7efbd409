"""Welch's t-test of two arms at a fixed horizon, and its sample size in advance.

In: the values of both arms. Out: the difference (challenger minus champion), its interval and
p-value. They hold for one look at a sample size that was fixed in advance. For repeated looks use
`confidence_sequence`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, sqrt
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


def welch_test(
    champion: Sequence[float] | Floats,
    challenger: Sequence[float] | Floats,
    *,
    confidence: float = 0.95,
) -> Welch:
    """Compare two means without assuming equal variances.

    d = mean1 - mean0, se**2 = s1**2 / n1 + s0**2 / n0, and t = d / se has
    se**4 / (s1**4 / (n1**2 (n1 - 1)) + s0**4 / (n0**2 (n0 - 1))) degrees of freedom.
    Raises ValueError for an arm with fewer than two values, or if no value differs.
    Source: Welch 1947, Biometrika 34:28.
    """
    from scipy.stats import t

    arms = [np.asarray(values, dtype=float) for values in (champion, challenger)]
    if min(map(len, arms)) < 2:
        raise ValueError(f"each arm needs two values, got {len(arms[0])} and {len(arms[1])}")
    parts = [float(values.var(ddof=1)) / len(values) for values in arms]
    if not sum(parts):
        raise ValueError("all values of each arm are equal: the t-test has no spread to use")
    error = sqrt(sum(parts))
    degrees = sum(parts) ** 2 / sum(
        part**2 / (len(values) - 1) for part, values in zip(parts, arms, strict=True)
    )
    difference = float(arms[1].mean() - arms[0].mean())
    reach = float(t.ppf((1 + confidence) / 2, degrees)) * error
    return Welch(
        difference,
        Interval(difference - reach, difference + reach),
        2 * float(t.sf(abs(difference) / error, degrees)),
        degrees,
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
