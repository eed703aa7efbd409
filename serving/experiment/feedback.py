"""Weights of feedback, so that one person cannot decide an experiment.

In: votes. Out: the counted ones with their weights, and the users whose number of votes stands out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, quantiles

FEWEST_USERS = 8  # quartiles of fewer users say little


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


def outliers(votes: Sequence[Vote]) -> dict[str, int]:
    """Return user -> number of votes, most first, where it is above the third quartile plus three
    times the distance of the quartiles (at least one vote). None of fewer than eight users.

    Source: Tukey 1977, Exploratory Data Analysis, 2D ("far out").
    """
    by_user = Counter(vote.user for vote in votes)
    if len(by_user) < FEWEST_USERS:
        return {}
    first, _, third = quantiles(by_user.values(), n=4)
    limit = third + 3 * max(1.0, third - first)
    return {user: number for user, number in by_user.most_common() if number > limit}
