"""The tests and intervals behind a promotion, written out so that each can be checked by reading.

In: counts of solved tasks, or one number for each task. Out: an interval, a p-value, a power.
Shares are in [0, 1], never in percent. scipy has the same tests; this package's tests compare with
it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import ceil, comb, lgamma, log, log1p, sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from problems.wilson import wilson_bounds

Floats = npt.NDArray[np.float64]
LARGE = 2000  # tasks above which power is approximated: exact power takes seconds
EDGE = 10  # Wilson's interval is too narrow with this many solved or unsolved tasks, or fewer


class Interval(NamedTuple):
    low: float
    high: float


class PValues(NamedTuple):
    """P-values of a sign test on the tasks that changed.

    `better`: chance of at least so many wins among the changed tasks if each win were a coin toss.
    `two_sided` doubles the smaller tail.
    """

    better: float
    worse: float
    two_sided: float


def wilson(solved: int, tasks: int, confidence: float = 0.95) -> Interval:
    """Return the interval of a share of independent tasks. Reliable near 0 and 1, unlike the normal
    one: 0 of 164 gives 0 to 2.3 %.

    Raises ValueError unless 0 <= solved <= tasks and tasks >= 1. Source: Wilson 1927, JASA 22:209.
    """
    if not (tasks >= 1 and 0 <= solved <= tasks):
        raise ValueError(
            f"`solved` must be between 0 and `tasks` (at least 1), got {solved} of {tasks}"
        )
    return Interval(*wilson_bounds(solved, tasks, confidence))


def clopper_pearson(solved: int, tasks: int, confidence: float = 0.95) -> Interval:
    """Return an interval with at least this coverage for every true share; conservative. Clopper &
    Pearson 1934, Biometrika 26:404.
    """
    from scipy.special import betaincinv  # scipy.stats takes half a second to import

    wilson(solved, tasks)  # raises ValueError for invalid counts
    tail = (1 - confidence) / 2
    low = 0.0 if solved == 0 else float(betaincinv(solved, tasks - solved + 1, tail))
    return Interval(
        low, 1.0 if solved == tasks else float(betaincinv(solved + 1, tasks - solved, 1 - tail))
    )


def share_interval(solved: int, tasks: int, confidence: float = 0.95) -> Interval:
    """Return Wilson's interval; if at most `EDGE` tasks are solved, or are not, widened to include
    Clopper and Pearson's.

    Wilson alone covers a true share between 0.05 and 0.95 of 100 tasks as little as 92.8 times in
    100, of 20 tasks 91.7; this at least 93.
    """
    low, high = wilson(solved, tasks, confidence)
    if min(solved, tasks - solved) > EDGE:
        return Interval(low, high)
    safe = clopper_pearson(solved, tasks, confidence)
    return Interval(min(low, safe.low), max(high, safe.high))


def mcnemar(won: int, lost: int) -> PValues:
    """Exact test of two models on the same tasks. Only tasks where they differ count; without any,
    p is 1.

    Source: McNemar 1947, Psychometrika 12:153, with binomial tails instead of the normal
    approximation.
    """
    better, worse = _upper_tail(won, won + lost), _upper_tail(lost, won + lost)
    return PValues(better, worse, min(1.0, 2 * min(better, worse)))


def fisher_fall(
    solved_before: int, tasks_before: int, solved_after: int, tasks_after: int
) -> float:
    """Return the p-value of "the share fell" for two draws of different tasks: Fisher's exact test,
    one-sided, slightly conservative.
    """
    solved, tasks = solved_before + solved_after, tasks_before + tasks_after
    ways = sum(
        comb(tasks_after, k) * comb(tasks_before, solved - k)
        for k in range(max(0, solved - tasks_before), solved_after + 1)
    )
    return ways / comb(tasks, solved)


def t_interval(values: Sequence[float]) -> Interval:
    """Return Student's 95 % interval of a mean over independent runs, at least two. Raises
    ValueError for fewer.
    """
    if len(values) < 2:
        raise ValueError(f"an interval needs at least two runs, got {len(values)}")
    from scipy.stats import t

    mean = sum(values) / len(values)
    error = (sum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values)) ** 0.5
    reach = float(t.ppf(0.975, len(values) - 1)) * error
    return Interval(mean - reach, mean + reach)


def power(gain: float, discordant: float, tasks: int, alpha: float) -> float:
    """Return the power of the one-sided McNemar test at `alpha` for a true gain on so many tasks.

    gain: true difference of the two shares; discordant: share of tasks that change either way, gain
    <= discordant <= 1. Exact up to `LARGE` tasks; above, the normal approximation that
    `tasks_for_gain` solves for the tasks.
    """
    if not 0 <= gain <= discordant <= 1:
        raise ValueError(
            f"`discordant` must be in [gain, 1] and `gain` at least 0, got {discordant} for a gain "
            f"of {gain}"
        )
    if discordant == 0:
        return 0.0
    if tasks > LARGE:
        reach = gain * sqrt(tasks) - NormalDist().inv_cdf(1 - alpha) * sqrt(discordant)
        spread = sqrt(discordant - gain**2)
        return NormalDist().cdf(reach / spread) if spread else float(reach > 0)
    winning = (discordant + gain) / (2 * discordant)
    changed = _binomial(tasks, discordant)
    return float(
        sum(
            changed[m] * _binomial(m, winning)[_wins_needed(m, alpha) :].sum()
            for m in range(tasks + 1)
            if changed[m] > 1e-9
        )
    )


def smallest_gain(
    discordant: float, tasks: int, alpha: float, target_power: float = 0.8
) -> float | None:
    """Return the smallest true gain that so many tasks show with the target power, to a tenth of a
    point; None if no gain does.

    discordant: share of tasks expected to change either way; a larger gain replaces it.
    """

    def shown(step: int) -> bool:
        gain = step / 1000
        return power(gain, max(gain, discordant), tasks, alpha) >= target_power

    return first_gain(1000, shown)


def first_gain(most: int, shown: Callable[[int], bool]) -> float | None:
    """Return the first of 1 to `most` tenths of a point that is shown, as a share; None if none is.

    Every greater one must be shown too.
    """
    step = 1 + bisect_left(range(1, most + 1), True, key=shown)
    return step / 1000 if step <= most else None


def tasks_for_gain(gain: float, discordant: float, alpha: float, target_power: float = 0.8) -> int:
    """Return about how many tasks the one-sided McNemar test needs to show a true gain with the
    target power.

    discordant: share of tasks expected to change either way; a larger gain replaces it. The normal
    approximation: (z(1 - alpha) * sqrt(d) + z(power) * sqrt(d - gain ** 2)) ** 2 / gain ** 2.
    Raises ValueError unless 0 < gain <= 1. Source: Connor 1987, Biometrics 43:207.
    """
    if not 0 < gain <= 1:
        raise ValueError(f"`gain` must be in (0, 1], got {gain}")
    changed = max(gain, discordant)
    z_alpha, z_power = NormalDist().inv_cdf(1 - alpha), NormalDist().inv_cdf(target_power)
    return ceil(((z_alpha * sqrt(changed) + z_power * sqrt(changed - gain**2)) / gain) ** 2)


def tasks_to_show(gain: float, discordant: float, alpha: float, target_power: float = 0.8) -> int:
    """Return the same number by the test's exact power, to a hundredth. The approximation is up to
    7 % too low.
    """
    tasks = tasks_for_gain(gain, discordant, alpha, target_power)
    step = ceil(tasks / 100)
    while power(gain, max(gain, discordant), tasks, alpha) < target_power:
        tasks += step
    return tasks


def _upper_tail(at_least: int, of: int) -> float:
    """Return P(X >= at_least) for `of` tosses of a fair coin, exact by integer arithmetic."""
    tail, ways = 0, 1
    for successes in range(of, at_least - 1, -1):
        tail += ways
        ways = ways * successes // (of - successes + 1)
    return float(tail / 2**of)


@lru_cache(maxsize=8192)
def _wins_needed(changed: int, alpha: float) -> int:
    """Return the fewest wins among the changed tasks with a p-value of at most alpha; one more than
    all if no number is enough.
    """
    tail, ways = 0, comb(changed, changed)
    for wins in range(changed, -1, -1):
        tail += ways
        if tail / 2**changed > alpha:
            return wins + 1
        ways = ways * wins // (changed - wins + 1)
    return 0


def _binomial(n: int, p: float) -> Floats:
    """Return the probabilities of 0..n successes."""
    if p in (0.0, 1.0):
        sure = np.zeros(n + 1)
        sure[n if p else 0] = 1.0
        return sure
    k = np.arange(n + 1)
    log_factorial = _log_factorials(n)
    chances: Floats = np.exp(
        log_factorial[n] - log_factorial - log_factorial[::-1] + k * log(p) + (n - k) * log1p(-p)
    )
    return chances


@lru_cache(maxsize=2048)
def _log_factorials(n: int) -> Floats:
    return np.array([lgamma(k + 1) for k in range(n + 1)])
