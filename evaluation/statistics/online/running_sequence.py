"""A confidence sequence that is carried on value by value, in constant memory.

In: values as they come. Out: the interval of `confidence_sequence`, which is that of all values at
once. Its state is a small JSON object, so a process can continue another one's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evaluation.statistics.hypothesis_tests import Interval
from evaluation.statistics.online.confidence_sequence import (
    GRID,
    Counts,
    cells,
    interval_of,
    scaled,
)


class RunningSequence:
    """A confidence sequence that takes one value at a time.

    low, high: bounds of a value.
    """

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high
        self.count = 0
        self.total = 0.0
        self._below: Counts = np.zeros(GRID + 1, dtype=np.int64)
        self._above: Counts = np.zeros(GRID + 1, dtype=np.int64)
        self._new: list[float] = []

    def add(self, value: float) -> None:
        self.count += 1
        self.total += value
        self._new.append(value)

    def interval(self, alpha: float = 0.05) -> Interval:
        self._flush()
        return interval_of(self._below, self._above, self.low, self.high, alpha)

    def state(self) -> dict[str, Any]:
        """Return all of it as JSON."""
        self._flush()
        return {
            "count": self.count,
            "total": self.total,
            "below": _sparse(self._below),
            "above": _sparse(self._above),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.count, self.total = state["count"], state["total"]
        self._below, self._above = _dense(state["below"]), _dense(state["above"])
        self._new.clear()

    def _flush(self) -> None:
        if not self._new:
            return
        table = scaled(self._new, self.low, self.high)
        self._new.clear()
        self._below += cells(table)
        self._above += cells(1 - table)


def _sparse(counts: Counts) -> list[list[int]]:
    (occupied,) = np.nonzero(counts)
    return [occupied.tolist(), counts[occupied].tolist()]


def _dense(sparse: list[list[int]]) -> Counts:
    counts: Counts = np.zeros(GRID + 1, dtype=np.int64)
    counts[sparse[0]] = sparse[1]
    return counts
