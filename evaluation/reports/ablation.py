"""The contribution of a setting: a baseline against the same training with one setting changed,
over the same seeds and tasks.

In: for each seed whether a task was solved, 0 or 1. Out: the difference with an interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from evaluation.statistics.hypothesis_tests import Interval
from evaluation.statistics.paired import difference_interval
from evaluation.statistics.seeds import compare_recipes

Runs = Sequence[Sequence[float]]  # one row for each seed, one column for each task


class Contribution(NamedTuple):
    """baseline - changed, as shares. `interval` is None if no task differs in several seeds."""

    baseline: float
    changed: float
    difference: float
    interval: Interval | None
    seeds: int
    tasks: int

    @property
    def significant(self) -> bool:
        return self.interval is not None and not self.interval.low <= 0.0 <= self.interval.high


def contribution(
    baseline: Runs, changed: Runs, *, confidence: float = 0.95, draws: int = 10_000, seed: int = 0
) -> Contribution:
    """Compare, paired by seed and task. Tasks are resampled and, with several seeds, seeds too
    (evaluation/statistics/seeds.py).

    With one seed the interval (Tango's) holds for other tasks and this seed alone. Raises
    ValueError if runs differ in seeds or tasks.
    """
    old, new = np.asarray(baseline, dtype=float), np.asarray(changed, dtype=float)
    if old.shape != new.shape or old.ndim != 2 or not old.size:
        raise ValueError(
            f"runs of shape {old.shape} and {new.shape}: score every run on the same seeds "
            "and tasks"
        )
    differences = old - new
    seeds, tasks = differences.shape
    measured = Contribution(
        float(old.mean()), float(new.mean()), float(differences.mean()), None, seeds, tasks
    )
    if seeds == 1:
        return measured._replace(
            interval=difference_interval(
                int((differences > 0).sum()), int((differences < 0).sum()), tasks, confidence
            )
        )
    if not differences.any():
        return measured
    # Compare the differences, as one recipe, with zeros: that pairs the runs by seed.
    zeros = np.zeros_like(differences)
    return measured._replace(
        interval=compare_recipes(
            zeros.tolist(), differences.tolist(), confidence=confidence, draws=draws, seed=seed
        ).interval
    )
