"""A challenger of a release compared with the champion, from the observations of answered requests.

In: observations in the order of their record. Out: the state of each guardrail, both means, the
sample ratio. It is a running sum: its size does not grow with the requests, and another process can
continue it (checkpoint.py).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Any

from evaluation.statistics.hypothesis_tests import Interval
from evaluation.statistics.online.sample_ratio import sample_ratio_p_value
from serving.experiment.guardrail import Harm
from serving.gateway.observations import Observation
from serving.release.plan import QUALITY, ReleasePlan
from serving.release.watch import GuardrailWatch


class ArmComparison:
    """A challenger compared with the champion during a release.

    plan: of the release; challenger: its version. shares: of the challenger in each step, among the
    requests of both; default, the plan's. others: challengers that are compared elsewhere.
    """

    def __init__(
        self,
        plan: ReleasePlan,
        challenger: int,
        shares: Sequence[float] | None = None,
        others: Container[int] = (),
    ) -> None:
        self.plan, self.challenger, self.others = plan, challenger, others
        self.shares = [step.share for step in plan.steps] if shares is None else shares
        self.watches = [GuardrailWatch(guardrail, plan) for guardrail in plan.guardrails]
        self.units: dict[int, tuple[int, int]] = {}  # step -> units of champion, of challenger

    def add(self, observations: Iterable[Observation]) -> None:
        """Add observations of this release that count, oldest first."""
        for observation in observations:
            if observation.step >= len(self.shares) or observation.version in self.others:
                continue  # answered after the last step; or by another challenger
            if not 0 < self.shares[observation.step] < 1:
                continue  # answered after the challenger was dropped
            challenger = observation.version == self.challenger
            champions, challengers = self.units.get(observation.step, (0, 0))
            self.units[observation.step] = (champions + (not challenger), challengers + challenger)
            for watch in self.watches:
                watch.add(observation, self.shares, challenger)

    def breached(self) -> bool:
        """Return whether a guardrail is breached. Much faster than `harms`, without intervals."""
        return any(w.differences.evidence.p_more <= self.plan.level for w in self.watches)

    def cleared(self) -> bool:
        """Return whether every guardrail with evidence is cleared. As fast as `breached`."""
        evidence = [watch.differences.evidence for watch in self.watches]
        return all(each.p_less <= self.plan.alpha for each in evidence if each.independent)

    def harms(self) -> list[Harm]:
        """Return the state of every guardrail."""
        return [watch.harm() for watch in self.watches]

    @property
    def measures_quality(self) -> bool:
        """Whether any request of the champion carried tests."""
        return any(w.guardrail.name == QUALITY and w.champion.count for w in self.watches)

    def pairs(self, step: int) -> int:
        """Return the pairs that the errors' guardrail has seen in this step."""
        return self.watches[0].by_step[step]

    def arms(self) -> dict[str, tuple[Interval, Interval]]:
        """Return guardrail -> interval of the champion's mean and of the challenger's."""
        return {
            watch.guardrail.name: (watch.champion.interval(), watch.challenger.interval())
            for watch in self.watches
            if watch.champion.count and watch.challenger.count
        }

    def ratio_p_value(self) -> float:
        """Return the p-value of "the traffic was split as assigned", over all steps."""
        counted = []
        for step, units in self.units.items():
            share = self.shares[step]
            if self.plan.experiment or not self.plan.steps[step].shadow:
                counted.append((units, (1 - share, share)))
        return sample_ratio_p_value(counted)

    def state(self) -> dict[str, Any]:
        """Return all of it as JSON."""
        return {
            "units": list(self.units.items()),
            "watches": [watch.state() for watch in self.watches],
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.units = {step: (first, second) for step, (first, second) in state["units"]}
        for watch, own in zip(self.watches, state["watches"], strict=True):
            watch.restore(own, self.shares)
