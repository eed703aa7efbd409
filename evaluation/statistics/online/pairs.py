"""Pairs of requests that both arms served at about the same time.

In: the arm and the value of each observation, in the order of exposure. Out: a difference for each
pair, challenger minus champion. A rise of the load or a change of the traffic hits both sides of a
pair, so it cancels. Pooled means of the arms would confuse it with the challenger as soon as the
challenger's share changes (Simpson's paradox).

A pair has one observation of the rarer arm and `ratio` of the other, so hardly any is wasted at any
share: at 1 % one challenger's value meets the mean of 99 champion's values. An observation that
finds no partner in time is dropped, so that traffic of different times is never compared.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluation.statistics.hypothesis_tests import Floats

Booleans = npt.NDArray[np.bool_]
PATIENCE = 10  # pairs' worth of observations that one waits for a partner


class Pairs(NamedTuple):
    """differences: challenger minus champion, shape (pairs,) or (pairs, metrics).

    closed: position of each pair's last observation.
    """

    differences: Floats
    closed: npt.NDArray[np.int64]


class Pairing:
    """Pairs the observations of one step of a rollout as they come, first with first.

    share: of the challenger in this step, in (0, 1). Which observations form a pair depends on the
    order of the arms alone, never on a value, which keeps a pair's expectation at the difference of
    the means. Raises ValueError for a share outside (0, 1).
    """

    def __init__(self, share: float) -> None:
        if not 0 < share < 1:
            raise ValueError(f"`share` must be in (0, 1), got {share}: nothing to compare with")
        self.challenger_is_rare = share <= 0.5
        self.ratio = max(1, round(1 / min(share, 1 - share)) - 1)
        self.lag = PATIENCE * (self.ratio + 1)
        self._rare: deque[int] = deque()
        self._others: deque[int] = deque()

    def add(self, at: int, challenger: bool) -> tuple[int, list[int]] | None:
        """Return the pair that observation number `at` completes, or None.

        A pair is the position of the rarer arm's observation and those of the other's `ratio`.
        """
        (self._rare if challenger == self.challenger_is_rare else self._others).append(at)
        for queue in (self._rare, self._others):
            while queue and at - queue[0] > self.lag:
                queue.popleft()
        if not self._rare or len(self._others) < self.ratio:
            return None
        return self._rare.popleft(), [self._others.popleft() for _ in range(self.ratio)]


def concurrent_pairs(
    challenger: Sequence[bool] | Booleans, values: Sequence[float] | Floats, share: float
) -> Pairs:
    """Pair the observations of one step of a rollout; see `Pairing`.

    challenger: arm of each observation; values: shape (n,) or (n, metrics).
    Raises ValueError for a share outside (0, 1) or different lengths.
    """
    pairing, table = Pairing(share), np.asarray(values, dtype=float)
    if len(challenger) != len(table):
        raise ValueError(f"{len(challenger)} arms for {len(table)} values")
    arms = np.asarray(challenger, dtype=bool).tolist()
    added = ((at, pairing.add(at, arm)) for at, arm in enumerate(arms))
    closed = [(at, pair) for at, pair in added if pair]
    one = np.array([rare for _, (rare, _) in closed], dtype=np.int64)
    groups = np.array([others for _, (_, others) in closed], dtype=np.int64)
    many = table[groups.reshape(len(one), pairing.ratio)].mean(1)
    differences = table[one] - many if pairing.challenger_is_rare else many - table[one]
    return Pairs(differences, np.array([at for at, _ in closed], dtype=np.int64))


def first_of_each(units: Sequence[str], challenger: Sequence[bool] | Booleans) -> Booleans:
    """Return which observations count: the first of each unit in each arm.

    A unit is what is assigned: a user, or a request without one. A user's requests resemble each
    other, so a hundred of them are not a hundred observations.
    """
    seen: set[tuple[str, bool]] = set()
    counts = np.zeros(len(units), dtype=bool)
    for at, key in enumerate(zip(units, map(bool, challenger), strict=True)):
        counts[at] = key not in seen
        seen.add(key)
    return counts
