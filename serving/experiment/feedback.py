"""Weights of feedback, so that neither one person nor one API key decides an experiment.

In: votes. Out: the counted ones with their weights, the users and keys whose number of votes stands
out, and how many users of a key count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, quantiles

FEWEST = 8  # names: quartiles of fewer say little
ALWAYS = 10


@dataclass(frozen=True)
class Vote:
    """One user's opinion on one response.

    key: the API key that sent it, by its hash. value: 1 accepted, 0 rejected, between for edited.
    """

    response: str
    key: str
    user: str
    arm: str
    value: float


def counted(votes: Sequence[Vote]) -> list[Vote]:
    """Return one vote for each response and key: the last one, since people change their minds."""
    return list({(vote.response, vote.key): vote for vote in votes}.values())


def weights(votes: Sequence[Vote], cap: float = 5.0) -> list[float]:
    """Return a weight for each counted vote: 1, or less so that a user's votes sum to at most
    `cap`.
    """
    by_user = Counter(vote.user for vote in votes)
    return [min(1.0, cap / by_user[vote.user]) for vote in votes]


def user_means(votes: Sequence[Vote], arm: str) -> dict[str, float]:
    """Return user -> mean of the user's counted votes on this arm.

    A user is one observation of the tests, however many votes he cast.
    """
    by_user: dict[str, list[float]] = {}
    for vote in votes:
        if vote.arm == arm:
            by_user.setdefault(vote.user, []).append(vote.value)
    return {user: fmean(values) for user, values in by_user.items()}


def acceptance(votes: Sequence[Vote], cap: float = 5.0) -> Mapping[str, float]:
    """Return arm -> weighted mean of the counted votes, for display."""
    totals: dict[str, tuple[float, float]] = {}
    for vote, weight in zip(votes, weights(votes, cap), strict=True):
        value, sum_ = totals.get(vote.arm, (0.0, 0.0))
        totals[vote.arm] = (value + weight * vote.value, sum_ + weight)
    return {arm: value / sum_ for arm, (value, sum_) in totals.items()}


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

    most: users of a key. share: largest share of a key among the counted users, where several keys
    have any, or twice an equal share if that is more: of few keys none could have less. `ALWAYS`
    users of a key count in any case. Users without a key all count. It depends
    on earlier users alone, not on a value, so the values that count stay unbiased.
    """

    def __init__(self, most: int, share: float) -> None:
        self.most, self.share = most, share
        self.counted: Counter[str] = Counter()  # key -> users
        self.left_out: Counter[str] = Counter()

    def admits(self, key: str) -> bool:
        """Return whether a further user of this key counts, and remember it."""
        if key and self._full(key):
            self.left_out[key] += 1
            return False
        self.counted[key] += 1
        return True

    def _full(self, key: str) -> bool:
        own, total = self.counted[key], self.counted.total()
        share = max(self.share, 2 / max(1, len(self.counted)))
        return own >= self.most or (own < total and own >= max(ALWAYS, share * total))
