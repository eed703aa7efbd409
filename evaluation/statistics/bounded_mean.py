"""The mean of bounded values over tasks or clusters of tasks: Gaffke's interval and its test.

In: a value for each task, such as pass@k in [0, 1] or a difference in [-1, 1], and its cluster, if
tasks are related. Out: an interval, a p-value. Both hold for every distribution on the range, for
20 tasks near 0 or 1 too, where a bootstrap's 95 % interval covers as little as 32 %. For values of
0 and 1 the interval is that of Clopper and Pearson.

Source: Gaffke 2005, Mathematical Methods of Statistics 14:451; Learned-Miller & Thomas 2019,
arXiv:1905.06208; proved by Vlassis & Thomas 2026, arXiv:2607.08415.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluation.statistics.hypothesis_tests import Floats, Interval

DRAWS = 10_000
CHUNK = 1000  # draws at once: 8 MB for 1,000 tasks
MAX_WEIGHTS = 20_000_000  # of all draws: 0.5 s; more than 2,000 different tasks get fewer draws
Clusters = Sequence[str] | None  # the cluster of each task; None: tasks are independent


class Units(NamedTuple):
    """Independent units: tasks, or clusters. Equal units are one row with a count."""

    sums: Floats  # (units, values): sums over the unit's tasks
    sizes: Floats  # (units,): its tasks
    counts: npt.NDArray[np.int64]  # (units,): how often such a unit occurs


def mean_interval(
    values: Sequence[float] | Floats,
    low: float = 0.0,
    high: float = 1.0,
    clusters: Clusters = None,
    *,
    confidence: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> Interval:
    """Return the interval of a mean. values: one for each task, in [low, high].

    Raises ValueError without values.
    """
    table = np.asarray(values, dtype=float)[:, None]
    return mean_intervals(
        table, low, high, clusters, confidence=confidence, draws=draws, seed=seed
    )[0]


def mean_intervals(
    values: Floats,
    low: float,
    high: float,
    clusters: Clusters = None,
    *,
    confidence: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> list[Interval]:
    """Return the interval of each column's mean, all from one set of draws. values: (tasks,
    columns).

    The observed tasks get random weights, uniform over all weights that sum to 1, together with one
    more task that nobody has seen: it has the lowest value for the lower limit, the highest for the
    upper one. A limit is a quantile of these means. Of clusters whole ones are weighted, and the
    unseen one has the mean size of a task's cluster.
    """
    units, lower, upper = _units(values, clusters), [], []
    for sums, tasks, unseen in _weighted(units, draws, seed):
        lower.append((sums + low * unseen) / (tasks + unseen))
        upper.append((sums + high * unseen) / (tasks + unseen))
    tail = (1 - confidence) / 2
    lows = np.quantile(np.concatenate(lower), tail, axis=0)
    highs = np.quantile(np.concatenate(upper), 1 - tail, axis=0)
    return [Interval(float(a), float(b)) for a, b in zip(lows, highs, strict=True)]


def chance_at_most(
    values: Sequence[float] | Floats,
    mean: float,
    low: float = 0.0,
    clusters: Clusters = None,
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> float:
    """Return the p-value of "the true mean is at most this": a small value rules it out. It agrees
    with the lower limit of `mean_interval`.
    """
    units = _units(np.asarray(values, dtype=float)[:, None], clusters)
    reached = np.concatenate(
        [
            sums + low * unseen <= mean * (tasks + unseen)
            for sums, tasks, unseen in _weighted(units, draws, seed)
        ]
    )
    return float(1 + reached.sum()) / (len(reached) + 1)


def _units(values: Floats, clusters: Clusters) -> Units:
    if not len(values):
        raise ValueError("no tasks, no interval")
    sums, sizes = values, np.ones(len(values))
    if clusters is not None:
        _, which = np.unique(np.asarray(clusters, dtype=str), return_inverse=True)
        sizes = np.bincount(which).astype(float)
        sums = np.zeros((len(sizes), values.shape[1]))
        np.add.at(sums, which, values)
    rows, counts = np.unique(np.column_stack([sizes, sums]), axis=0, return_counts=True)
    return Units(rows[:, 1:], rows[:, 0], counts)


def _weighted(units: Units, draws: int, seed: int) -> Iterator[tuple[Floats, Floats, Floats]]:
    """Yield by chunks of draws the weighted sums of values, the weighted number of tasks, and that
    of the unseen unit. Weights are exponential: divided by their sum they are uniform.
    """
    rng = np.random.default_rng(seed)
    draws = min(draws, max(CHUNK, MAX_WEIGHTS // len(units.counts)))
    tasks = units.counts @ units.sizes
    size = units.counts @ units.sizes**2 / tasks
    for first in range(0, draws, CHUNK):
        chunk = min(CHUNK, draws - first)
        weights = rng.standard_gamma(units.counts.astype(float), (chunk, len(units.counts)))
        unseen = size * rng.standard_exponential((chunk, 1))
        yield weights @ units.sums, (weights @ units.sizes)[:, None], unseen
