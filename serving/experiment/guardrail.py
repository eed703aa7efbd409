"""Guardrails: whether a challenger harms users more than is tolerated, at every moment.

In: pairs of the champion's and the challenger's requests at the same time. Out: an always-valid
p-value of too much harm, one of its absence, and an interval. The champion of last week is never
the comparison: its traffic was another one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evaluation.statistics.alpha_spending import level_at
from evaluation.statistics.hypothesis_tests import Interval
from evaluation.statistics.online.running_sequence import RunningSequence
from evaluation.statistics.online.shared_evidence import SharedEvidence


@dataclass(frozen=True)
class Guardrail:
    """What one request may cost a user; larger is worse.

    high: the largest value of one request. 1 for shares of requests, the price of the longest
    completion for a cost. Larger values count as `high`.
    margin: how much worse than the champion's mean is tolerated, in the same unit.
    ratio: None, or how many times the champion's 95th percentile is tolerated (`slow.py`); then the
    value is whether a request took longer.
    """

    name: str
    high: float = 1.0
    margin: float = 0.01
    ratio: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.margin < self.high:
            raise ValueError(
                f"{self.name}: `margin` must be in [0, {self.high:g}), got {self.margin:g}"
            )


@dataclass(frozen=True)
class Harm:
    """State of one guardrail.

    p_value: of "the challenger is worse by at most the margin"; level: the share of alpha that this
    guardrail may use for it. cleared_p: of "it is worse by the margin or more"; alpha: of the whole
    release. A challenger that is too harmful in one guardrail is promoted only if that one is
    cleared, so each may use all of alpha. independent: pairs left without any one key. against,
    helped_by: the key without which alone the guardrail is cleared, or breached.
    """

    guardrail: Guardrail
    pairs: int
    interval: Interval
    p_value: float
    level: float
    cleared_p: float = 1.0
    alpha: float = 0.05
    independent: int = 0
    against: str = ""
    helped_by: str = ""

    @property
    def breached(self) -> bool:
        """Whether more harm than the margin is shown."""
        return self.p_value <= self.level

    @property
    def cleared(self) -> bool:
        """Whether the margin or more is ruled out."""
        return self.cleared_p <= self.alpha


class HarmSequence:
    """The differences of one guardrail, each in [-high, high], pair by pair."""

    def __init__(self, guardrail: Guardrail) -> None:
        bounds = (guardrail.margin, -guardrail.high, guardrail.high)
        self.guardrail = guardrail
        self.sequence, self.evidence = RunningSequence(*bounds[1:]), SharedEvidence(*bounds)

    def add(self, difference: float, without: dict[str, float | None] | None = None) -> None:
        """Add a pair. without: key -> the difference without its observations, None without any."""
        self.sequence.add(difference)
        self.evidence.add(difference, without or {})

    def state(self) -> dict[str, Any]:
        """Return all of it as JSON."""
        return {"sequence": self.sequence.state(), "evidence": self.evidence.state()}

    def restore(self, state: dict[str, Any]) -> None:
        self.sequence.restore(state["sequence"])
        self.evidence.restore(state["evidence"])

    def harm(self, level: float, alpha: float) -> Harm:
        """Return the state of the guardrail."""
        return Harm(
            self.guardrail,
            self.sequence.count,
            self.sequence.interval(2 * level),
            self.evidence.p_more,
            level,
            cleared_p=self.evidence.p_less,
            alpha=alpha,
            independent=self.evidence.independent,
            against=self.evidence.hides_less(alpha),
            helped_by=self.evidence.hides_more(level),
        )


def guardrail_level(
    alpha: float, guardrails: int, arms: int = 1, release: int | None = None
) -> float:
    """Return the level of each guardrail, so that all of them together roll an equal challenger
    back with a chance of at most alpha.

    arms: challengers at the same time. release: None where alpha is the chance in each release;
    else this release's number, 1 for the first, and alpha is the chance over all releases ever.
    """
    return (alpha if release is None else level_at(alpha, release)) / (guardrails * arms)
