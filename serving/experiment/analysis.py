"""Analysis of the primary metric: did the challenger's users get better answers?

In: observations and votes of one rollout, and the users' observations before it. Out: the
difference with an interval that may be looked at all the time, and Welch's test for the one look
that was planned. The metric is verified answers where requests carry tests, else accepted feedback;
without both, quality is not measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypeVar

import numpy as np

from evaluation.statistics.online.confidence_sequence import mean_sequence
from evaluation.statistics.online.cuped import cuped
from evaluation.statistics.online.pairs import concurrent_pairs
from evaluation.statistics.online.welch import Welch, welch_test
from serving.experiment.decision import Primary
from serving.experiment.feedback import Vote, counted, outliers
from serving.gateway.observations import Feedback, Observation

FEWEST = 20  # units of each arm for Welch's test
VERIFIED, ACCEPTED = "verified answers", "accepted answers"
Key = TypeVar("Key")


@dataclass(frozen=True)
class Value:
    """One unit's value in one step, in [0, 1], and whether the challenger answered it. key: of the
    API, "" without one.
    """

    key: str
    unit: str
    challenger: bool
    step: int
    value: float


@dataclass(frozen=True)
class Analysis:
    """welch: of the units' means with CUPED; None with fewer than `FEWEST` of an arm.

    outliers: user -> number of votes, where it stands out.
    """

    primary: Primary
    welch: Welch | None
    units: int
    outliers: dict[str, int]


def analyze(
    observations: Sequence[Observation],
    votes: Sequence[Feedback],
    before: Iterable[Observation],
    *,
    challenger: int,
    shares: Sequence[float],
    level: float,
    gain: float,
    users_per_key: int = 100,
) -> Analysis | None:
    """Return the analysis of one rollout, or None where quality is not measured.

    observations: of the rollout, oldest first. before: of any user before it, for CUPED.
    challenger: its version. shares: of the challenger in each step. level: chance of a wrong
    interval. gain: least gain for a promotion. users_per_key: most units of an API key that count
    in each arm and step.
    """
    stuffers: dict[str, int] = {}
    verified = [o for o in observations if o.verified is not None]
    if verified:
        name = VERIFIED
        values = [
            Value(o.key, o.unit, o.version == challenger, o.step, float(o.verified or 0))
            for o in verified
        ]
        covariate = _means([(o.unit, float(o.verified)) for o in before if o.verified is not None])
    else:
        name, covariate = ACCEPTED, {}
        values, stuffers = _votes(observations, votes, challenger)
    if not values:
        return None
    values = _capped(values, users_per_key)
    differences: list[float] = []
    for step, share in enumerate(shares):
        own = _first_of_each([value for value in values if value.step == step])
        arms = [value.challenger for value in own]
        differences += list(
            concurrent_pairs(arms, [value.value for value in own], share).differences
        )
    interval = mean_sequence(differences, -1, 1, alpha=level)
    primary = Primary(name, len(differences), interval, gain)
    units = len({value.unit for value in values})
    return Analysis(primary, _welch(values, covariate), units, stuffers)


def _votes(
    observations: Sequence[Observation], votes: Sequence[Feedback], challenger: int
) -> tuple[list[Value], dict[str, int]]:
    """Return a value for each response with votes, and the users whose number of votes stands out.

    A response's value is the mean of its keys' last votes.
    """
    by_response = {o.response: o for o in observations if not o.shadow}
    own = counted(
        [
            Vote(v.response, v.key, v.unit, by_response[v.response].arm, v.value)
            for v in sorted(votes, key=lambda vote: vote.time)
            if v.response in by_response
        ]
    )
    means = _means([(vote.response, vote.value) for vote in own])
    values = [
        Value(o.key, o.unit, o.version == challenger, o.step, means[o.response])
        for o in by_response.values()
        if o.response in means
    ]
    return values, outliers(own)


def _welch(values: Sequence[Value], covariate: dict[str, float]) -> Welch | None:
    """Return Welch's test of the units' means, adjusted by their means before the rollout."""
    means = _means([((value.unit, value.challenger), value.value) for value in values])
    arms = np.array([challenger for _, challenger in means])
    table = np.array(list(means.values()))
    if min(arms.sum(), (~arms).sum()) < FEWEST:
        return None
    known = fmean(covariate.values()) if covariate else 0.0
    adjusted = cuped(table, [covariate.get(unit, known) for unit, _ in means])
    if not adjusted[arms].var() + adjusted[~arms].var():
        return None  # every unit has the same value
    return welch_test(adjusted[~arms], adjusted[arms])


def _means(rows: Iterable[tuple[Key, float]]) -> dict[Key, float]:
    found: dict[Key, list[float]] = {}
    for key, value in rows:
        found.setdefault(key, []).append(value)
    return {key: fmean(values) for key, values in found.items()}


def _capped(values: Sequence[Value], most: int) -> list[Value]:
    """Return the values of the first `most` units of each API key in each arm and step: a key may
    name any number of users. Without keys all count.
    """
    units: dict[tuple[str, bool, int], set[str]] = {}
    kept = []
    for value in values:
        own = units.setdefault((value.key, value.challenger, value.step), set())
        if not value.key or value.unit in own or len(own) < most:
            own.add(value.unit)
            kept.append(value)
    return kept


def _first_of_each(values: Sequence[Value]) -> list[Value]:
    """Return the first value of each unit in each arm: a user's answers resemble each other."""
    first: dict[tuple[str, bool], Value] = {}
    for value in values:
        first.setdefault((value.unit, value.challenger), value)
    return list(first.values())
