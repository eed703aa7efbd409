"""What a setting contributes: a baseline against the same training with one thing changed, over the same seeds and tasks.

In: for each seed a share solved a task (0 or 1 for one answer). Out: the difference with an interval, and in words what so few runs can show.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np

from evaluation.statistics import Interval, bootstrap_mean

Runs = Sequence[Sequence[float]]  # a row a seed, a column a task


class Contribution(NamedTuple):
    """baseline - changed, as shares. `interval` is None where no task differs anywhere: then nothing can be said of its size."""

    baseline: float
    changed: float
    difference: float
    interval: Interval | None
    seeds: int
    tasks: int

    @property
    def shown(self) -> bool:
        return self.interval is not None and not self.interval.low <= 0.0 <= self.interval.high


def contribution(baseline: Runs, changed: Runs, *, confidence: float = 0.95, draws: int = 10_000, seed: int = 0) -> Contribution:
    """Paired by seed and task. Tasks are drawn again, and where there are several seeds, seeds too; a few seeds' spread is stretched to Student's t.

    With one seed the interval holds for other tasks and this seed alone. Raises ValueError where the runs are not over the same seeds and tasks.
    """
    old, new = np.asarray(baseline, dtype=float), np.asarray(changed, dtype=float)
    if old.shape != new.shape or old.ndim != 2 or not old.size:
        raise ValueError(f"runs of shape {old.shape} and {new.shape}: score every run on the same seeds and tasks")
    apart = old - new
    seeds, tasks = apart.shape
    found = Contribution(float(old.mean()), float(new.mean()), float(apart.mean()), None, seeds, tasks)
    if not apart.any():
        return found
    if seeds == 1:
        return found._replace(interval=bootstrap_mean(apart[0].tolist(), confidence=confidence, draws=draws, seed=seed))
    from scipy.stats import norm, t

    means, free = apart.mean(1, keepdims=True), seeds - 1
    reach = sqrt(seeds / free) * float(t.ppf((1 + confidence) / 2, free) / norm.ppf((1 + confidence) / 2))
    stretched = apart + (reach - 1) * (means - means.mean())
    generator = np.random.default_rng(seed)
    weights = generator.multinomial(tasks, np.full(tasks, 1 / tasks), size=draws) / tasks
    runs = generator.multinomial(seeds, np.full(seeds, 1 / seeds), size=draws) / seeds
    low, high = np.quantile(((runs @ stretched) * weights).sum(1), [(1 - confidence) / 2, (1 + confidence) / 2])
    return found._replace(interval=Interval(float(low), float(high)))
