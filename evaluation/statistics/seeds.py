"""Several runs of one recipe: a difference with an interval over both tasks and seeds.

In: for each recipe one score for each run and task. Out: the difference of two recipes with an
interval over both levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np

from evaluation.statistics.bounded_mean import Clusters
from evaluation.statistics.hypothesis_tests import Floats, Interval


class Recipes(NamedTuple):
    """The difference of two recipes over tasks and seeds.

    `p_better`: chance of such a difference if the recipes were equally good; `p_two_sided`: of one
    as large in either direction.
    """

    difference: float
    interval: Interval
    p_better: float
    p_two_sided: float
    runs: tuple[int, int]


def compare_recipes(
    before: Sequence[Sequence[float]],
    after: Sequence[Sequence[float]],
    clusters: Clusters = None,
    *,
    confidence: float = 0.95,
    draws: int = 10_000,
    seed: int = 0,
) -> Recipes:
    """Hierarchical bootstrap: tasks (or whole clusters of them) are resampled, the same for all
    runs, and runs within each recipe.

    before, after: one row for each run (a training seed), one column for each task, the same tasks
    in all; values are pass@k estimates or 0 and 1. A bootstrap over three runs underestimates their
    spread; so each run's deviation from its recipe's mean is stretched to what Student's t allows
    for so few.
    Raises ValueError for fewer than two runs on a side, or runs of unequal length.
    Source: Davison & Hinkley 1997, Bootstrap Methods, 3.8 (several levels); the stretching is ours,
    checked by simulation (measurements/promotions.py).
    """
    old, new = (_stretched(runs, confidence) for runs in (before, after))
    if old.shape[1] != new.shape[1]:
        raise ValueError(
            f"{old.shape[1]} tasks before and {new.shape[1]} after: evaluate every run on the "
            "same tasks"
        )
    rng, tasks = np.random.default_rng(seed), old.shape[1]
    _, unit = np.unique(range(tasks) if clusters is None else clusters, return_inverse=True)
    units = int(unit.max()) + 1
    difference = float(new.mean() - old.mean())
    draw_differences: list[Floats] = []
    for count in [1000] * (draws // 1000) + ([draws % 1000] if draws % 1000 else []):
        weights = rng.multinomial(units, np.full(units, 1 / units), size=count)[:, unit]
        weights = weights / weights.sum(1, keepdims=True)
        ours, theirs = (
            rng.multinomial(len(runs), np.full(len(runs), 1 / len(runs)), size=count) / len(runs)
            for runs in (new, old)
        )
        draw_differences.append(((ours @ new - theirs @ old) * weights).sum(1))
    means = np.concatenate(draw_differences)
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    p_better, p_worse = (
        float((1 + np.sum(tail >= away)) / (draws + 1))
        for tail, away in ((means - difference, difference), (difference - means, -difference))
    )
    return Recipes(
        difference,
        Interval(float(low), float(high)),
        p_better,
        min(1.0, 2 * min(p_better, p_worse)),
        (len(old), len(new)),
    )


def _stretched(runs: Sequence[Sequence[float]], confidence: float) -> Floats:
    from scipy.stats import norm, t

    if len({len(run) for run in runs}) != 1 or len(runs) < 2:
        lengths = ", ".join(str(len(run)) for run in runs)
        raise ValueError(
            f"runs over {lengths or 'no'} tasks: give at least two runs, each over the same tasks"
        )
    values = np.asarray(runs, dtype=float)
    means, free = values.mean(1, keepdims=True), len(runs) - 1
    reach = sqrt(len(runs) / free) * float(
        t.ppf((1 + confidence) / 2, free) / norm.ppf((1 + confidence) / 2)
    )
    stretched: Floats = values + (reach - 1) * (means - means.mean())
    return stretched
