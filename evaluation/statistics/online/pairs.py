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
from statistics import fmean
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from evaluation.statistics.hypothesis_tests import Floats

Booleans = npt.NDArray[np.bool_]
Item = TypeVar("Item")
PATIENCE = 10  # pairs' worth of observations that one waits for a partner


class Pairs(NamedTuple):
    """Paired observations of challenger and champion.

    differences: challenger minus champion. closed: position of each pair's last observation.
    """

    differences: Floats
    closed: npt.NDArray[np.int64]


class Pair(NamedTuple, Generic[Item]):
    """The observations of one pair: one of the rarer arm, `ratio` of the other."""

    challenger: list[Item]
    champion: list[Item]


class Pairing(Generic[Item]):
    """Pairs the observations of one step of a release as they come, first with first.

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
        self.seen = 0
        self._rare: deque[tuple[int, Item]] = deque()
        self._others: deque[tuple[int, Item]] = deque()

    def add(self, challenger: bool, item: Item) -> Pair[Item] | None:
        """Return the pair that this observation completes, or None."""
        rare, others = self._rare, self._others
        (rare if challenger == self.challenger_is_rare else others).append((self.seen, item))
        for queue in (rare, others):
            while queue and self.seen - queue[0][0] > self.lag:
                queue.popleft()
        self.seen += 1
        if not rare or len(others) < self.ratio:
            return None
        one = [rare.popleft()[1]]
        many = [others.popleft()[1] for _ in range(self.ratio)]
        return Pair(one, many) if self.challenger_is_rare else Pair(many, one)

    def state(self) -> dict[str, Any]:
        """Return what waits for a partner, as JSON."""
        return {"seen": self.seen, "rare": list(self._rare), "others": list(self._others)}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from the state of a pairing with the same share."""
        self.seen = state["seen"]
        self._rare = deque((at, item) for at, item in state["rare"])
        self._others = deque((at, item) for at, item in state["others"])


def epochs(shares: Sequence[float]) -> list[int]:
    """Return for each step the first one of those before it, itself included, that had its share
    without a change since. Pairs may be completed across such steps.
    """
    first: list[int] = []
    for step, share in enumerate(shares):
        same = step > 0 and abs(share - shares[step - 1]) < 1e-9
        first.append(first[-1] if same else step)
    return first


def concurrent_pairs(
    challenger: Sequence[bool] | Booleans, values: Sequence[float] | Floats, share: float
) -> Pairs:
    """Pair the observations of one step of a release; see `Pairing`.

    challenger: arm of each observation. Raises ValueError for a share outside (0, 1) or different
    lengths.
    """
    pairing: Pairing[float] = Pairing(share)
    arms = np.asarray(challenger, dtype=bool).tolist()
    table = np.asarray(values, dtype=float).tolist()
    rows = enumerate(zip(arms, table, strict=True))
    added = [(at, pairing.add(arm, value)) for at, (arm, value) in rows]
    closed = [(at, fmean(pair.challenger) - fmean(pair.champion)) for at, pair in added if pair]
    return Pairs(
        np.array([difference for _, difference in closed], dtype=float),
        np.array([at for at, _ in closed], dtype=np.int64),
    )
