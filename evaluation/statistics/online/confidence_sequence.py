"""Confidence sequences: intervals of a mean that hold at every moment at once, however often one
looks and whenever one stops.

In: values in the order of observation. Out: an interval, a p-value. Two kinds:

- Betting, for values with known bounds: error rates, refusals, verified passes, latencies up to a
  timeout, and differences of two arms (pairs.py). It holds at every sample size and needs only
  that the conditional mean given the past is the mean in question. The bets are fixed shares of the
  capital ("diversified Kelly"), not estimates: the capital depends on the multiset of the values,
  not on tuning, and can be computed again from stored rows. Empirical-Bernstein intervals of the
  same paper have a closed form, but are wider for rare events such as errors.
- Asymptotic, for values without bounds. It needs some hundred values first. No guardrail uses it.

Sources: Waudby-Smith & Ramdas 2024, JRSS-B 86:1, arXiv:2010.09686, theorem 1, dKelly;
Waudby-Smith, Arbour, Sinha, Kennedy & Ramdas 2024, Annals of Statistics 52:2613, arXiv:2103.06476.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, exp, inf, log, sqrt

import numpy as np

from evaluation.statistics.hypothesis_tests import Floats, Interval

# Shares of the capital at stake. Small bets suit small differences, large ones rare events.
BETS: Floats = np.geomspace(0.005, 0.95, 12)
STEPS = 40  # of a bisection: 1e-12 of the range
Values = Sequence[float] | Floats


def log_capital(values: Values, mean: float, bets: Floats = BETS) -> Floats:
    """Return the logarithm of the capital after each value of a player who bets that the true mean
    is larger than `mean`.

    K_t = average over bets g of product over i <= t of (1 - g + g * x_i / mean).
    If the true mean is at most `mean`, K is a nonnegative supermartingale that starts at 1. So it
    ever reaches 1 / alpha with a chance of at most alpha (Ville's inequality).

    values: in [0, 1], shape (..., n); mean: in (0, 1). Returns shape (..., n).
    """
    table = np.asarray(values, dtype=float)
    total = np.full(table.shape, -inf)
    for bet in bets:  # one bet at a time: memory of one more array, not of twelve
        total = np.logaddexp(total, np.log1p(bet * (table / mean - 1)).cumsum(-1))
    capital: Floats = total - log(len(bets))
    return capital


def p_value(values: Values, mean: float, low: float = 0.0, high: float = 1.0) -> float:
    """Return an always-valid p-value of "the true mean is at most `mean`": 1 / the largest capital
    so far. It may be read after every value; 1 without values.

    values: in [low, high]; mean: in (low, high). Raises ValueError outside.
    """
    table = _scaled(values, low, high)
    if not low < mean < high:
        raise ValueError(f"`mean` must be in ({low:g}, {high:g}), got {mean:g}")
    if not len(table):
        return 1.0
    return min(1.0, exp(-float(log_capital(table, (mean - low) / (high - low)).max())))


def mean_sequence(
    values: Values, low: float = 0.0, high: float = 1.0, *, alpha: float = 0.05
) -> Interval:
    """Return the present interval of a confidence sequence for the mean of bounded values.

    It contains the means at which neither side's capital is 2 / alpha now. The whole range without
    values. Raises ValueError for a value outside [low, high].
    """
    table = _scaled(values, low, high)
    rows, counts = np.unique(table, return_counts=True)
    below = _lower_limit(rows, counts, alpha / 2)
    above = 1 - _lower_limit(1 - rows, counts, alpha / 2)
    return Interval(low + (high - low) * below, low + (high - low) * above)


def asymptotic_sequence(values: Values, *, alpha: float = 0.05, best_at: int = 1000) -> Interval:
    """Return the present interval of an asymptotic confidence sequence for a mean without bounds.

    mean +- s * sqrt((t * r + 1) / (t**2 * r) * (log(t * r + 1) - 2 * log(alpha))), with r such that
    it is narrowest after about `best_at` values. Use it after some hundred values: its error rate
    is a limit. Raises ValueError for fewer than two values.
    Source: arXiv:2103.06476, theorem 2.2 and appendix B.2.
    """
    table = np.asarray(values, dtype=float)
    if (t := len(table)) < 2:
        raise ValueError(f"an interval needs at least two values, got {t}")
    ratio = (-2 * log(alpha) + log(-2 * log(alpha) + 1)) / best_at
    spread = t * ratio + 1
    reach = float(table.std()) * sqrt(spread / (t * t * ratio) * (log(spread) - 2 * log(alpha)))
    return Interval(float(table.mean()) - reach, float(table.mean()) + reach)


def pairs_needed(difference: float, spread: float, alpha: float) -> int:
    """Return about how many pairs show a true difference on average, for the plan of a rollout:
    2 * (spread / difference)**2 * log(number of bets / alpha).

    spread: standard deviation of a pair's difference. The capital of the best bet grows by
    (difference / spread)**2 / 2 a pair (second order), and its share of the start is 1 / bets.
    Raises ValueError unless difference > 0.
    """
    if difference <= 0:
        raise ValueError(f"`difference` must be above 0, got {difference}")
    return ceil(2 * (spread / difference) ** 2 * log(len(BETS) / alpha))


def _lower_limit(rows: Floats, counts: Floats, alpha: float) -> float:
    """Return the largest mean that is ruled out from below, 0 if there is none.

    The capital falls as the mean rises, so bisection finds it.
    """
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        paths = np.log1p(BETS[:, None] * (rows / middle - 1)) @ counts
        ruled_out = len(rows) and np.logaddexp.reduce(paths) - log(len(BETS)) >= -log(alpha)
        low, high = (middle, high) if ruled_out else (low, middle)
    return low


def _scaled(values: Values, low: float, high: float) -> Floats:
    table = np.asarray(values, dtype=float)
    outside = ~((table >= low) & (table <= high))  # NaN is outside
    if outside.any():
        raise ValueError(
            f"value {int(outside.argmax())} is {table[outside][0]:g}, not in [{low:g}, {high:g}]"
        )
    scaled: Floats = (table - low) / (high - low)
    return scaled
