"""The share of requests that are too slow, measured by the champion's own 95th percentile.

In: pairs of times in seconds. Out: for each pair the difference of two shares: the challenger's
times above `ratio` times the percentile, minus the champion's above the percentile. Its mean is at
most 0 exactly if the challenger's tail, at this ratio, is no longer than the champion's, whatever
the load; no number of seconds has to be chosen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from statistics import fmean, quantiles

NEWEST, FEWEST = 500, 20  # champion's times that the percentile is of


class Percentile:
    """The champion's 95th percentile, of pairs that have closed: a pair is never judged by its own
    times, so the expectation of its difference is the difference of the shares.
    """

    def __init__(self, times: Sequence[float] = ()) -> None:
        self.times = deque(times, maxlen=NEWEST)

    def judge(
        self, challenger: list[float], champion: list[float], ratio: float
    ) -> tuple[list[float], list[float]] | None:
        """Return 1 or 0 for each time of a pair, whether it is slow, and learn the champion's;
        None before the percentile is known.
        """
        limit = self.value()
        self.times.extend(champion)
        if limit is None:
            return None
        own = [float(time > ratio * limit) for time in challenger]
        return own, [float(time > limit) for time in champion]

    def value(self) -> float | None:
        return quantiles(self.times, n=20)[-1] if len(self.times) >= FEWEST else None


def difference(challenger: list[float], champion: list[float]) -> float | None:
    """Return the difference of the means; None where a side has no value."""
    return fmean(challenger) - fmean(champion) if challenger and champion else None
