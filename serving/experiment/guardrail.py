"""Guardrails: whether a challenger harms users more than is tolerated, at every moment.

In: pairs of the champion's and the challenger's requests at the same time. Out: an always-valid
p-value and interval of the harm. The champion of last week is never the comparison: its traffic was
another one.
"""

from __future__ import annotations

from dataclasses import dataclass

from evaluation.statistics.alpha_spending import level_at
from evaluation.statistics.hypothesis_tests import Interval
from evaluation.statistics.online.running_sequence import RunningSequence


@dataclass(frozen=True)
class Guardrail:
    """What one request may cost a user; larger is worse.

    high: the largest value of one request. 1 for errors and refusals, the timeout for a latency in
    seconds, the price of the longest completion for a cost. Larger values count as `high`.
    margin: how much worse than the champion's mean is tolerated, in the same unit.
    """

    name: str
    high: float = 1.0
    margin: float = 0.01

    def __post_init__(self) -> None:
        if not 0 <= self.margin < self.high:
            raise ValueError(
                f"{self.name}: `margin` must be in [0, {self.high:g}), got {self.margin:g}"
            )


@dataclass(frozen=True)
class Harm:
    """State of one guardrail. p_value: of "the challenger is worse by at most the margin".

    level: the share of alpha that this guardrail may use.
    """

    guardrail: Guardrail
    pairs: int
    interval: Interval
    p_value: float
    level: float

    @property
    def breached(self) -> bool:
        """Whether more harm than the margin is shown."""
        return self.p_value <= self.level

    @property
    def cleared(self) -> bool:
        """Whether more harm than the margin is ruled out."""
        return self.interval.high < self.guardrail.margin


def sequence_of(guardrail: Guardrail) -> RunningSequence:
    """Return the sequence that takes a guardrail's differences, each in [-high, high]."""
    return RunningSequence(guardrail.margin, -guardrail.high, guardrail.high)


def shown_harm(guardrail: Guardrail, sequence: RunningSequence, level: float) -> Harm:
    """Return the state of a guardrail from its sequence."""
    interval = sequence.interval(2 * level)
    return Harm(guardrail, sequence.count, interval, sequence.p_value, level)


def guardrail_level(
    alpha: float, guardrails: int, arms: int = 1, release: int | None = None
) -> float:
    """Return the level of each guardrail, so that all of them together roll an equal challenger
    back with a chance of at most alpha.

    arms: challengers at the same time. release: None where alpha is the chance in each release;
    else this release's number, 1 for the first, and alpha is the chance over all releases ever.
    """
    return (alpha if release is None else level_at(alpha, release)) / (guardrails * arms)
