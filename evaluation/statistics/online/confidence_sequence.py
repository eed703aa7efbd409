"""Confidence sequences: intervals of a mean that hold at every moment at once, however often one
looks and whenever one stops.

In: values with known bounds, in the order of observation: errors, verified passes, latencies up to
a timeout, differences of two arms (pairs.py). Out: an interval, a p-value. Both hold at every
sample size, and need only that the mean given the past is the mean in question.

A player bets on each value; the capital after many bets is the evidence. The bets are fixed shares
of the capital, not estimates, so the capital depends on the values alone and can be computed again
from stored rows. Empirical-Bernstein intervals have a closed form, but are wider for rare events
such as errors.

Source: Waudby-Smith & Ramdas 2024, "Estimating means of bounded random variables by betting",
JRSS-B 86:1, arXiv:2010.09686: the capital process, and "diversified Kelly" (dKelly) for the bets.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, exp, inf, log

import numpy as np
import numpy.typing as npt

from evaluation.statistics.hypothesis_tests import Floats, Interval

# Shares of the capital at stake. Small bets suit small differences, large ones rare events.
BETS: Floats = np.geomspace(0.005, 0.95, 12)
STEPS = 40  # of a bisection: 1e-12 of the range
GRID = 4096  # cells of the range for an interval, so that its cost does not grow with the values
Values = Sequence[float] | Floats
Counts = npt.NDArray[np.int64]


def log_capital(values: Values, mean: float) -> Floats:
    """Return the logarithm of the capital after each value of a player who bets that the true mean
    is larger than `mean`.

    K_t = average over BETS g of product over i <= t of (1 - g + g * x_i / mean).
    If the true mean is at most `mean`, K is a nonnegative supermartingale that starts at 1. So it
    ever reaches 1 / alpha with a chance of at most alpha (Ville's inequality).

    values: in [0, 1], shape (..., n); mean: in (0, 1). Returns shape (..., n).
    """
    table = np.asarray(values, dtype=float)
    total = np.full(table.shape, -inf)
    for bet in BETS:  # one bet at a time: memory of one more array, not of twelve
        total = np.logaddexp(total, np.log1p(bet * (table / mean - 1)).cumsum(-1))
    capital: Floats = total - log(len(BETS))
    return capital


def p_value(values: Values, mean: float, low: float = 0.0, high: float = 1.0) -> float:
    """Return an always-valid p-value of "the true mean is at most `mean`": 1 / the largest capital
    so far. It may be read after every value; 1 without values.

    values: in [low, high]; mean: in (low, high). Raises ValueError outside.
    """
    table = scaled(values, low, high)
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
    values. Values are rounded away from the limit, by 1 / 4096 of the range at most, which makes it
    wider and never wrong. Raises ValueError for a value outside [low, high].
    """
    table = scaled(values, low, high)
    return interval_of(cells(table), cells(1 - table), low, high, alpha)


def pairs_needed(difference: float, spread: float, alpha: float) -> int:
    """Return about how many pairs show a true difference on average, for the plan of a release:
    2 * (spread / difference)**2 * log(number of bets / alpha).

    spread: standard deviation of a pair's difference. The capital of the best bet grows by
    (difference / spread)**2 / 2 a pair (second order), and its share of the start is 1 / bets.
    Raises ValueError unless difference > 0.
    """
    if difference <= 0:
        raise ValueError(f"`difference` must be above 0, got {difference}")
    return ceil(2 * (spread / difference) ** 2 * log(len(BETS) / alpha))


def cells(values: Floats) -> Counts:
    """Return how many of these values in [0, 1] are in each cell of the range, rounded down."""
    counts: Counts = np.bincount((values * GRID).astype(np.int64), minlength=GRID + 1)
    return counts


def interval_of(below: Counts, above: Counts, low: float, high: float, alpha: float) -> Interval:
    """Return the interval of a mean from the cells of the scaled values x, and of 1 - x."""
    lower, upper = _lower_limit(below, alpha / 2), 1 - _lower_limit(above, alpha / 2)
    return Interval(low + (high - low) * lower, low + (high - low) * upper)


def _lower_limit(counts: Counts, alpha: float) -> float:
    """Return the largest mean that is ruled out from below, or 0.

    The capital falls as the mean rises, so bisection finds it.
    """
    (occupied,) = np.nonzero(counts)
    rows, numbers = occupied / GRID, counts[occupied]
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        paths = np.log1p(BETS[:, None] * (rows / middle - 1)) @ numbers
        ruled_out = len(rows) and np.logaddexp.reduce(paths) - log(len(BETS)) >= -log(alpha)
        low, high = (middle, high) if ruled_out else (low, middle)
    return low


def scaled(values: Values, low: float, high: float) -> Floats:
    """Return the values as shares of the range. Raises ValueError for one outside of it."""
    table = np.asarray(values, dtype=float)
    outside = ~((table >= low) & (table <= high))  # NaN is outside
    if outside.any():
        raise ValueError(
            f"value {int(outside.argmax())} is {table[outside][0]:g}, not in [{low:g}, {high:g}]"
        )
    shares: Floats = (table - low) / (high - low)
    return shares
