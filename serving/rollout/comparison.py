"""Both arms of a rollout compared, from the observations of answered requests.

In: observations in the order of their record. Out: the state of each guardrail, the arms' means,
the sample ratio. It can be computed again from the stored rows at any time.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from evaluation.statistics.hypothesis_tests import Interval
from evaluation.statistics.online.confidence_sequence import mean_sequence, p_value
from evaluation.statistics.online.pairs import Pairing
from evaluation.statistics.online.sample_ratio import sample_ratio_p_value
from serving.experiment.guardrail import Guardrail, Harm, measured_harm
from serving.gateway.observations import Observation, Observations
from serving.rollout.plan import QUALITY, SPEED, Plan

FAILURES = ("timeout", "engine", "unavailable")  # errors that a version is responsible for


def harm_of(guardrail: Guardrail, observation: Observation) -> float | None:
    """Return what a request cost its user, in the guardrail's unit; None where it says nothing."""
    if guardrail.name == QUALITY:
        return None if observation.verified is None else float(not observation.verified)
    if observation.error == "overloaded":
        return None  # the gateway's queue was full: no version is responsible
    if guardrail.name == "errors":
        return float(observation.error in FAILURES)
    if guardrail.name == "refusals":
        return float(observation.error == "refused")
    if observation.error in ("refused", "unavailable"):
        return None  # it generated nothing
    if guardrail.name == SPEED and observation.shadow:
        return None  # a shadow waits for real requests: its seconds are not comparable
    value = observation.total_s if guardrail.name == SPEED else observation.completion_tokens
    return min(max(0.0, value), guardrail.high)  # a clock that jumps makes negative seconds


@dataclass
class Watch:
    """The pairs of one guardrail. by_step: pairs in each step; arms: values of both, for means;
    by_key: users of each API key.
    """

    guardrail: Guardrail
    differences: array[float] = field(default_factory=lambda: array("d"))
    by_step: dict[int, int] = field(default_factory=dict)
    champion: array[float] = field(default_factory=lambda: array("d"))
    challenger: array[float] = field(default_factory=lambda: array("d"))
    seen: set[tuple[int, str, bool]] = field(default_factory=set)
    pairings: dict[int, Pairing] = field(default_factory=dict)
    by_key: Counter[tuple[int, str, bool]] = field(default_factory=Counter)


class Comparison:
    """plan: of the rollout; challenger: its version."""

    def __init__(self, plan: Plan, challenger: int) -> None:
        self.plan, self.challenger = plan, challenger
        self.watches = [Watch(guardrail) for guardrail in plan.guardrails]
        self.units: dict[int, tuple[int, int]] = {}  # step -> units of champion, of challenger
        self.read = 0  # number of the last observation that `follow` has read
        self.requests = 0
        self._assigned: set[tuple[int, str, bool]] = set()

    def follow(self, rollout: str, observations: Observations) -> bool:
        """Add what was recorded for this rollout since the last call; return whether there was
        anything.
        """
        rows = list(observations.read(self.read, rollout))
        self.add(observation for _, observation in rows)
        self.read = rows[-1][0] if rows else self.read
        return bool(rows)

    def add(self, observations: Iterable[Observation]) -> None:
        """Add observations of this rollout, oldest first."""
        for observation in observations:
            self.requests += 1
            if observation.step >= len(self.plan.steps):
                continue  # answered after the last step
            challenger = observation.version == self.challenger
            self._count(observation, challenger)
            for watch in self.watches:
                value = harm_of(watch.guardrail, observation)
                if value is not None:
                    self._pair(watch, observation, challenger, value)

    def breached(self) -> bool:
        """Return whether a guardrail is breached. Much faster than `harms`, without intervals."""
        return any(
            p_value(
                np.frombuffer(watch.differences),
                watch.guardrail.margin,
                -watch.guardrail.high,
                watch.guardrail.high,
            )
            <= self.plan.level
            for watch in self.watches
        )

    def harms(self) -> list[Harm]:
        """Return the state of every guardrail."""
        return [
            measured_harm(watch.guardrail, np.frombuffer(watch.differences), self.plan.level)
            for watch in self.watches
        ]

    @property
    def measures_quality(self) -> bool:
        """Whether any request carried tests."""
        return any(w.guardrail.name == QUALITY and w.champion for w in self.watches)

    def pairs(self, step: int) -> int:
        """Return the pairs that the errors' guardrail has seen in this step."""
        return self.watches[0].by_step.get(step, 0)

    def arms(self) -> dict[str, tuple[Interval, Interval]]:
        """Return guardrail -> interval of the champion's mean and of the challenger's."""
        return {
            watch.guardrail.name: (
                mean_sequence(np.frombuffer(watch.champion), 0, watch.guardrail.high),
                mean_sequence(np.frombuffer(watch.challenger), 0, watch.guardrail.high),
            )
            for watch in self.watches
            if len(watch.champion) and len(watch.challenger)
        }

    def ratio_p_value(self) -> float:
        """Return the p-value of "the traffic was split as assigned", over all steps."""
        counted = []
        for step, units in self.units.items():
            share = self.plan.steps[step].share
            if not self.plan.steps[step].shadow:
                counted.append((units, (1 - share, share)))
        return sample_ratio_p_value(counted)

    def _count(self, observation: Observation, challenger: bool) -> None:
        key = (observation.step, observation.unit, challenger)
        if self.plan.sticky and key in self._assigned:
            return
        self._assigned.add(key)
        champions, challengers = self.units.get(observation.step, (0, 0))
        self.units[observation.step] = (
            (champions, challengers + 1) if challenger else (champions + 1, challengers)
        )

    def _pair(self, watch: Watch, observation: Observation, challenger: bool, value: float) -> None:
        step, arm = observation.step, watch.challenger if challenger else watch.champion
        again = (unit := (step, observation.unit, challenger)) in watch.seen
        if watch.guardrail.name == QUALITY and observation.key and not again:
            key = (step, observation.key, challenger)
            if watch.by_key[key] >= self.plan.users_per_key:
                return  # whoever sends tests decides what fails
            watch.by_key[key] += 1
        arm.append(value)
        if again:
            return  # a user's requests resemble each other: the first of a step counts
        if self.plan.sticky:
            watch.seen.add(unit)
        if step not in watch.pairings:
            watch.pairings[step] = Pairing(self.plan.steps[step].share)
        if (difference := watch.pairings[step].add(challenger, value)) is not None:
            watch.differences.append(difference)
            watch.by_step[step] = watch.by_step.get(step, 0) + 1
