"""A confidence sequence that is carried on value by value, in constant memory.

In: values as they come. Out: the interval and the p-value of `confidence_sequence`, which are those
of all values at once. Its state is a small JSON object, so a process can continue another one's.
"""

from __future__ import annotations

from math import exp, inf, log
from typing import Any

import numpy as np

from evaluation.statistics.hypothesis_tests import Interval
from evaluation.statistics.online.confidence_sequence import (
    BETS,
    GRID,
    Counts,
    cells,
    interval_of,
    scaled,
)


class RunningSequence:
    """A confidence sequence that takes one value at a time.

    low, high: bounds of a value. mean: `p_value` is of "the true mean is at most this", in (low,
    high).
    """

    def __init__(self, mean: float, low: float, high: float) -> None:
        self.mean, self.low, self.high = mean, low, high
        self.count = 0
        self.total = 0.0
        self._capital = np.zeros(len(BETS))  # logarithm, of each bet
        self._largest = -inf  # of the logarithm of the bets' mean capital, so far
        self._below: Counts = np.zeros(GRID + 1, dtype=np.int64)
        self._above: Counts = np.zeros(GRID + 1, dtype=np.int64)
        self._new: list[float] = []

    def add(self, value: float) -> None:
        self.count += 1
        self.total += value
        self._new.append(value)

    @property
    def p_value(self) -> float:
        """Always-valid: it may be read after every value."""
        self._flush()
        return min(1.0, exp(-self._largest)) if self.count else 1.0

    def interval(self, alpha: float = 0.05) -> Interval:
        self._flush()
        return interval_of(self._below, self._above, self.low, self.high, alpha)

    def state(self) -> dict[str, Any]:
        """Return all of it as JSON."""
        self._flush()
        return {
            "count": self.count,
            "total": self.total,
            "capital": self._capital.tolist(),
            "largest": self._largest if self.count else None,
            "below": _sparse(self._below),
            "above": _sparse(self._above),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.count, self.total = state["count"], state["total"]
        self._capital = np.array(state["capital"])
        self._largest = -inf if state["largest"] is None else state["largest"]
        self._below, self._above = _dense(state["below"]), _dense(state["above"])
        self._new.clear()

    def _flush(self) -> None:
        """Bet on the new values, one after another."""
        if not self._new:
            return
        table = scaled(self._new, self.low, self.high)
        self._new.clear()
        self._below += cells(table)
        self._above += cells(1 - table)
        mean = (self.mean - self.low) / (self.high - self.low)
        paths = np.log1p(np.outer(BETS, table / mean - 1)).cumsum(1) + self._capital[:, None]
        self._capital = paths[:, -1]
        capital = np.logaddexp.reduce(paths, axis=0) - log(len(BETS))
        self._largest = max(self._largest, float(capital.max()))


def _sparse(counts: Counts) -> list[list[int]]:
    (occupied,) = np.nonzero(counts)
    return [occupied.tolist(), counts[occupied].tolist()]


def _dense(sparse: list[list[int]]) -> Counts:
    counts: Counts = np.zeros(GRID + 1, dtype=np.int64)
    counts[sparse[0]] = sparse[1]
    return counts
