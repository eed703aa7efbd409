"""Evidence on a mean that holds with any single sender's values left out.

In: the values of pairs, and what each would be without one sender's observations. Out: always-valid
p-values in both directions. One sender alone, whatever he sends, can therefore neither show a harm
nor hide one: the evidence without him is among those that must agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import exp, log
from typing import Any

import numpy as np

from evaluation.statistics.hypothesis_tests import Floats
from evaluation.statistics.online.confidence_sequence import BETS, scaled

NOBODY: Mapping[str, float | None] = {}


class SharedEvidence:
    """The capital of a player who bets that the mean is larger than `mean`, of one who bets that it
    is smaller, and of both without each sender.

    low, high: bounds of a value. The capital without a sender has the guarantee of
    `confidence_sequence.log_capital` for the values that remain.
    """

    def __init__(self, mean: float, low: float, high: float) -> None:
        self.mean, self.low, self.high = mean, low, high
        self.count = 0
        self.lacking: Counter[str] = Counter()  # sender -> values that are gone without him
        self._total: Floats = np.zeros((2, len(BETS)))
        self._share: dict[str, Floats] = {}  # sender -> what the logarithms lose without him
        self._new: list[tuple[float, Mapping[str, float | None]]] = []

    def add(self, value: float, without: Mapping[str, float | None] = NOBODY) -> None:
        """Add a pair's value. without: sender -> the value without him; None where none is left."""
        self.count += 1
        self.lacking.update(sender for sender, left in without.items() if left is None)
        self._new.append((value, without))

    @property
    def independent(self) -> int:
        """Values that are left without the sender of most of them."""
        return self.count - max(self.lacking.values(), default=0)

    @property
    def p_more(self) -> float:
        """Of "the mean is at most `mean`", with any one sender left out, as of now."""
        return self._p_value(0)

    @property
    def p_less(self) -> float:
        """Of "the mean is at least `mean`", with any one sender left out, as of now."""
        return self._p_value(1)

    def hides_more(self, level: float) -> str:
        """Return the sender without whom alone "at most `mean`" is ruled out at this level; "" if
        there is none, or if all senders together rule it out too.
        """
        return self._hides(0, level)

    def hides_less(self, level: float) -> str:
        """Return the sender without whom alone "at least `mean`" is ruled out at this level."""
        return self._hides(1, level)

    def state(self) -> dict[str, Any]:
        """Return all of it as JSON."""
        self._flush()
        return {
            "count": self.count,
            "lacking": self.lacking,
            "total": self._total.tolist(),
            "share": {sender: own.tolist() for sender, own in self._share.items()},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.count, self.lacking = state["count"], Counter(state["lacking"])
        self._total = np.array(state["total"])
        self._share = {sender: np.array(own) for sender, own in state["share"].items()}
        self._new.clear()

    def _p_value(self, side: int) -> float:
        """Of a side's claim, with any one sender left out."""
        least = min(self._capitals(side).values())
        return min(1.0, exp(-least))

    def _hides(self, side: int, level: float) -> str:
        capitals = self._capitals(side)
        sender = max(capitals, key=capitals.__getitem__)
        return sender if capitals[""] < -log(level) <= capitals[sender] else ""

    def _capitals(self, side: int) -> dict[str, float]:
        """Return sender -> logarithm of the capital without him; "" for that with all."""
        self._flush()
        paths = np.stack([self._total[side], *(self._total[side] - own[side] for own in
                                               self._share.values())])  # fmt: skip
        capitals = np.logaddexp.reduce(paths, axis=1) - log(len(BETS))
        return dict(zip(["", *self._share], capitals.tolist(), strict=True))

    def _flush(self) -> None:
        """Bet on the new values."""
        if not self._new:
            return
        values = [value for value, _ in self._new]
        senders = [(at, s, v) for at, (_, own) in enumerate(self._new) for s, v in own.items()]
        self._new.clear()
        logs = self._logs(values)
        # One after another, so that parts give the same sum as all at once.
        self._total = np.concatenate([self._total[None], logs]).cumsum(0)[-1]
        if not senders:
            return
        left = self._logs([values[at] if value is None else value for at, _, value in senders])
        for (at, sender, value), kept in zip(senders, left, strict=True):
            lost = logs[at] if value is None else logs[at] - kept
            self._share[sender] = self._share.get(sender, 0.0) + lost

    def _logs(self, values: list[float]) -> Floats:
        """Return the logarithm of the factor of each bet, shape (values, 2, bets)."""
        mean = (self.mean - self.low) / (self.high - self.low)
        return capital_logs(scaled(values, self.low, self.high), mean)


def capital_logs(values: Floats, mean: float) -> Floats:
    """Return log(1 - g + g * x / m) for each bet g, and the same of 1 - x and 1 - m; shape (values,
    2, bets). values, mean: in [0, 1].
    """
    more = BETS * (values[:, None] / mean - 1)
    less = BETS * ((1 - values[:, None]) / (1 - mean) - 1)
    return np.log1p(np.stack([more, less], axis=1))
