"""Analysis of the primary metric: did the challenger's users get better answers?

In: observations and votes of one release. Out: the difference with an interval that may be looked
at all the time, and Welch's test for the one look that was planned. The metric is verified answers
where requests carry tests, else accepted feedback; without both, quality is not measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TypeVar

import numpy as np

from evaluation.statistics.hypothesis_tests import Interval
from evaluation.statistics.online.confidence_sequence import mean_sequence
from evaluation.statistics.online.pairs import concurrent_pairs, epochs
from evaluation.statistics.online.welch import Welch, welch_test
from serving.experiment.decision import Primary
from serving.experiment.feedback import KeyLimit, counted, outliers
from serving.gateway.observations import Feedback, Observation

FEWEST = 20  # units of each arm for Welch's test
LEFT_OUT = 20  # keys, each of which may be left out; the others have too few values to matter
VERIFIED, ACCEPTED = "verified answers", "accepted answers"
Key = TypeVar("Key")


@dataclass(frozen=True)
class Value:
    """One unit's value in one step, in [0, 1], and whether the challenger answered it. key: of the
    API, "" without one. votes: that were sent for it.
    """

    key: str
    unit: str
    challenger: bool
    step: int
    value: float
    votes: int = 1


@dataclass(frozen=True)
class Mean:
    """Of one arm's counted values: their number, sum, and the interval of their mean."""

    count: int
    total: float
    interval: Interval


@dataclass(frozen=True)
class Senders:
    """Who sends many of the values. users, keys: name -> number of values, where it stands out;
    left_out: key -> users that do not count because the key has too many.
    """

    users: dict[str, int]
    keys: dict[str, int]
    left_out: dict[str, int]


@dataclass(frozen=True)
class Analysis:
    """The two arms of an experiment compared.

    welch: of the units' means; None with fewer than `FEWEST` of an arm.

    champion, challenger: means of the counted units, the first value of each in a step.
    """

    primary: Primary
    welch: Welch | None
    units: int
    senders: Senders
    champion: Mean
    challenger: Mean


def analyze(
    observations: Sequence[Observation],
    votes: Sequence[Feedback],
    *,
    challenger: int,
    shares: Sequence[float],
    level: float,
    gain: float,
    key_share: float = 1.0,
    trusted: Sequence[str] = (),
) -> Analysis | None:
    """Return the analysis of one release, or None where quality is not measured.

    observations: of the release, oldest first. challenger: its version; the other observations are
    the champion's. shares: of the challenger among both, in each step. level: chance of a wrong
    interval. gain: least gain for a promotion. key_share: how many units of an API key count in
    each arm (`KeyLimit`). trusted: keys that count without limit.

    The interval contains those without each of the `LEFT_OUT` keys with most values: no single one
    decides.
    """
    verified = [o for o in observations if o.verified is not None]
    if verified:
        name = VERIFIED
        values = [
            Value(o.key, o.unit, o.version == challenger, o.step, float(o.verified or 0))
            for o in verified
        ]
    else:
        name = ACCEPTED
        values = _votes(observations, votes, challenger)
    values = [value for value in values if value.step < len(shares)]  # not after the last step
    if not values:
        return None
    users = outliers(value.unit for value in values for _ in range(value.votes))
    keys = outliers(value.key for value in values for _ in range(value.votes) if value.key)
    values = [replace(value, key="") if value.key in trusted else value for value in values]
    values, left_out = _capped(values, key_share)
    counted = Counter(value.key for value in values if value.key)
    lacking = [[v for v in values if v.key != key] for key, _ in counted.most_common(LEFT_OUT)]
    differences, *others = [_differences(own, shares) for own in (values, *lacking)]
    intervals = [mean_sequence(own, -1, 1, alpha=level) for own in (differences, *others)]
    interval = Interval(min(i.low for i in intervals), max(i.high for i in intervals))
    primary = Primary(name, len(differences), interval, gain)
    units = len({value.unit for value in values})
    senders = Senders(users, keys, left_out)
    first = [value for _, own in _first(values, shares) for value in own]
    means = [_mean([v.value for v in first if v.challenger == arm]) for arm in (False, True)]
    return Analysis(primary, _welch(values), units, senders, *means)


def _first(values: Sequence[Value], shares: Sequence[float]) -> list[tuple[int, list[Value]]]:
    """Return the first value of each unit in each epoch, by the epoch's first step."""
    epoch = epochs(shares)
    return [
        (e, _first_of_each([v for v in values if epoch[v.step] == e])) for e in sorted({*epoch})
    ]


def _differences(values: Sequence[Value], shares: Sequence[float]) -> list[float]:
    """Return the differences of pairs of units, challenger minus champion."""
    return [
        float(difference)
        for at, own in _first(values, shares)
        if 0 < shares[at] < 1  # else the challenger was dropped
        for difference in concurrent_pairs(
            [value.challenger for value in own], [value.value for value in own], shares[at]
        ).differences
    ]


def _mean(values: Sequence[float]) -> Mean:
    return Mean(len(values), sum(values), mean_sequence(values))


def _votes(
    observations: Sequence[Observation], votes: Sequence[Feedback], challenger: int
) -> list[Value]:
    """Return a value for each response with votes, which is the mean of its keys' last votes."""
    by_response = {o.response: o for o in observations if not o.shadow}
    known = (vote for vote in votes if vote.response in by_response)
    own = counted(sorted(known, key=lambda vote: vote.time))
    means = _means([(vote.response, vote.value) for vote in own])
    cast = Counter(vote.response for vote in votes)
    return [
        Value(o.key, o.unit, o.version == challenger, o.step, means[o.response], cast[o.response])
        for o in by_response.values()
        if o.response in means
    ]


def _welch(values: Sequence[Value]) -> Welch | None:
    """Return Welch's test of the units' means."""
    means = _means([((value.unit, value.challenger), value.value) for value in values])
    arms = np.array([challenger for _, challenger in means])
    table = np.array(list(means.values()))
    if min(arms.sum(), (~arms).sum()) < FEWEST:
        return None
    if not table[arms].var() + table[~arms].var():
        return None  # every unit has the same value
    return welch_test(table[~arms], table[arms])


def _means(rows: Iterable[tuple[Key, float]]) -> dict[Key, float]:
    found: dict[Key, list[float]] = {}
    for key, value in rows:
        found.setdefault(key, []).append(value)
    return {key: fmean(values) for key, values in found.items()}


def _capped(values: Sequence[Value], share: float) -> tuple[list[Value], dict[str, int]]:
    """Return the values of the units that count, and key -> units that do not."""
    limits = {arm: KeyLimit(share) for arm in (False, True)}
    admitted: dict[tuple[str, bool], bool] = {}
    for value in values:
        if (unit := (value.unit, value.challenger)) not in admitted:
            admitted[unit] = limits[value.challenger].admits(value.key)
    kept = [value for value in values if admitted[value.unit, value.challenger]]
    return kept, dict(limits[False].left_out + limits[True].left_out)


def _first_of_each(values: Sequence[Value]) -> list[Value]:
    """Return the first value of each unit, in whichever arm: a user's answers resemble each other,
    and the rarer arm must not go on to meet frequent users after the other has met them all.
    """
    first: dict[str, Value] = {}
    for value in values:
        first.setdefault(value.unit, value)
    return list(first.values())
