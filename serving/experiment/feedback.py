"""Which feedback counts, so that neither one person nor one API key decides an experiment.

In: votes. Out: the counted ones, the users and keys whose number of votes stands out, and how many
users of a key count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import quantiles

from serving.gateway.observations import Feedback

FEWEST = 8  # names: quartiles of fewer say little
ALWAYS = 10


def counted(votes: Sequence[Feedback]) -> list[Feedback]:
    """Return one vote for each response and key: the last one, since people change their minds."""
    return list({(vote.response, vote.key): vote for vote in votes}.values())


def outliers(names: Iterable[str]) -> dict[str, int]:
    """Return name -> how often it is there, most first, where that is above the third quartile plus
    three times the distance of the quartiles (at least one). None of fewer than eight names.

    names: the user, or the key, of each vote. Source: Tukey 1977, Exploratory Data Analysis, 2D
    ("far out").
    """
    counts = Counter(names)
    if len(counts) < FEWEST:
        return {}
    first, _, third = quantiles(counts.values(), n=4)
    limit = third + 3 * max(1.0, third - first)
    return {name: number for name, number in counts.most_common() if number > limit}


class KeyLimit:
    """How many users of an API key count in an arm: a key may name any number of users.

    share: largest share of a key among the counted users, where several keys have any, or twice an
    equal share if that is more: of few keys none could have less. `ALWAYS` users of a key count in
    any case. Users without a key all count. It depends on earlier users alone, not on a value, so
    the values that count stay unbiased.
    """

    def __init__(self, share: float) -> None:
        self.share = share
        self.counted: Counter[str] = Counter()  # key -> users
        self.left_out: Counter[str] = Counter()
        self.total = 0

    def admits(self, key: str) -> bool:
        """Return whether a further user of this key counts, and remember it."""
        if key and self._full(key):
            self.left_out[key] += 1
            return False
        self.counted[key] += 1
        self.total += 1
        return True

    def _full(self, key: str) -> bool:
        own = self.counted[key]
        share = max(self.share, 2 / max(1, len(self.counted)))
        return ALWAYS <= own < self.total and own >= share * self.total

    def state(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return all of it as JSON."""
        return self.counted, self.left_out

    def restore(self, counted: dict[str, int], left_out: dict[str, int]) -> None:
        self.counted, self.left_out = Counter(counted), Counter(left_out)
        self.total = self.counted.total()
