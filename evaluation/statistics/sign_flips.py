"""The paired test of two models by sign flips: exact, for several completions a task, for pass@k,
and for clusters of related tasks.

In: a difference for each task (after minus before), and its cluster, if tasks are related. Out:
p-values. If the two models are equally good on every task, the difference of a task, or of a whole
cluster, is as likely in favour of either: each sign is a coin toss. With one completion a task and
without clusters this is McNemar's exact test.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

import numpy as np

from evaluation.statistics.bounded_mean import Clusters
from evaluation.statistics.hypothesis_tests import Floats, PValues

# Differences are rounded to steps of 1 / 2520, in which shares of 1 to 10, 12, 14, 15, 18 and 20
# completions are exact; of very many tasks to 1 / 60 or 1 / 10. The test of rounded differences is
# exact in any case, because rounding keeps the symmetry.
GRIDS = (2520, 60, 10)
MAX_WORK = 300_000_000  # additions: about 0.3 s


def sign_flip_test(differences: Sequence[float] | Floats, clusters: Clusters = None) -> PValues:
    """Return how often random signs give a sum at least as far from 0; p is 1 if no task differs.

    All 2 ** units sign patterns are counted, by adding one unit after the other to the distribution
    of the sum. Source: Fisher 1935, The Design of Experiments, section 21.
    """
    flips = _whole(_sums(np.asarray(differences, dtype=float), clusters))
    if not flips:
        return PValues(1.0, 1.0, 1.0)
    chances: Floats = np.ones(1)  # of each sum of the units whose sign is positive
    for step in sorted(map(abs, flips)):
        longer = np.zeros(len(chances) + step)
        longer[: len(chances)] = chances
        longer[step:] += chances
        chances = longer / 2
    seen = sum(step for step in flips if step > 0)
    better, worse = float(chances[seen:].sum()), float(chances[: seen + 1].sum())
    better, worse = min(1.0, better), min(1.0, worse)
    return PValues(better, worse, min(1.0, 2 * min(better, worse)))


def _sums(differences: Floats, clusters: Clusters) -> Floats:
    if clusters is None:
        return differences
    _, which = np.unique(np.asarray(clusters, dtype=str), return_inverse=True)
    sums: Floats = np.bincount(which, weights=differences).astype(float)
    return sums


def _whole(sums: Floats) -> list[int]:
    """Return the sums in whole steps of the grid, without zeros and common factors."""
    steps: list[int] = []
    for grid in GRIDS:
        steps = [int(step) for step in np.rint(grid * sums) if step]
        common = gcd(*steps) or 1
        steps = [step // common for step in steps]
        if len(steps) * sum(map(abs, steps)) <= MAX_WORK:
            break
    return steps
