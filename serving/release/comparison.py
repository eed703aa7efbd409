"""A challenger of a release compared with the champion, from the observations of answered requests.

In: observations in the order of their record. Out: the state of each guardrail, both means, the
sample ratio. It is a running sum: its size does not grow with the requests, except for the names of
their users, and another process can continue it (checkpoint.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from typing import Any

from evaluation.statistics.hypothesis_tests import Interval
from evaluation.statistics.online.pairs import Pairing, epochs
from evaluation.statistics.online.running_sequence import RunningSequence
from evaluation.statistics.online.sample_ratio import sample_ratio_p_value
from serving.experiment.feedback import KeyLimit
from serving.experiment.guardrail import Guardrail, Harm, sequence_of, shown_harm
from serving.gateway.observations import Observation
from serving.release.plan import QUALITY, SPEED, ReleasePlan

FAILURES = ("timeout", "engine", "unavailable")  # errors that a version is responsible for


def harm_of(guardrail: Guardrail, observation: Observation) -> float | None:
    """Return what a request cost its user, in the guardrail's unit; None where it says nothing."""
    if guardrail.name == QUALITY:
        return None if observation.verified is None else float(not observation.verified)
    if observation.error in ("overloaded", "suspended"):
        return None  # the gateway's queue was full, or it stood still: no version is responsible
    if guardrail.name == "errors":
        return float(observation.error in FAILURES)
    if guardrail.name == "refusals":
        return float(observation.error in ("refused", "declined"))
    if observation.error in ("refused", "unavailable"):
        return None  # it generated nothing
    if guardrail.name == SPEED and observation.shadow:
        return None  # a shadow waits for real requests: its seconds are not comparable
    value = observation.total_s if guardrail.name == SPEED else observation.completion_tokens
    return min(max(0.0, value), guardrail.high)  # a clock that jumps makes negative seconds


class GuardrailObservations:
    """What one guardrail has seen. by_step: pairs in each step; champion, challenger: the values of
    both, for their means; limits: of users a key, for the champion and the challenger.
    """

    def __init__(self, guardrail: Guardrail, plan: ReleasePlan) -> None:
        self.guardrail = guardrail
        self.differences = sequence_of(guardrail)
        high = guardrail.high
        self.champion = RunningSequence(high / 2, 0, high)
        self.challenger = RunningSequence(high / 2, 0, high)
        self.by_step: Counter[int] = Counter()
        self.pairings: dict[int, Pairing] = {}
        self.limits = [KeyLimit(plan.users_per_key, plan.key_share) for _ in range(2)]

    def pair(self, step: int, shares: Sequence[float], challenger: bool, value: float) -> None:
        """Add the value to the pairs of its step."""
        epoch = epochs(shares)[step] if len(shares) > 1 else step
        if epoch not in self.pairings:
            self.pairings[epoch] = Pairing(shares[epoch])
        if (difference := self.pairings[epoch].add(challenger, value)) is not None:
            self.differences.add(difference)
            self.by_step[step] += 1

    def state(self) -> dict[str, Any]:
        """Return all of it as JSON."""
        sequences = (self.differences, self.champion, self.challenger)
        return {
            "sequences": [sequence.state() for sequence in sequences],
            "by_step": list(self.by_step.items()),
            "pairings": [(step, pairing.state()) for step, pairing in self.pairings.items()],
            "limits": [(limit.counted, limit.left_out) for limit in self.limits],
        }

    def restore(self, state: dict[str, Any], shares: Sequence[float]) -> None:
        sequences = (self.differences, self.champion, self.challenger)
        for sequence, own in zip(sequences, state["sequences"], strict=True):
            sequence.restore(own)
        self.by_step = Counter(dict(state["by_step"]))
        self.pairings = {step: Pairing(shares[step]) for step, _ in state["pairings"]}
        for step, own in state["pairings"]:
            self.pairings[step].restore(own)
        for limit, (counted, left_out) in zip(self.limits, state["limits"], strict=True):
            limit.counted, limit.left_out = Counter(counted), Counter(left_out)


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
        self.watches = [GuardrailObservations(guardrail, plan) for guardrail in plan.guardrails]
        self.units: dict[int, tuple[int, int]] = {}  # step -> units of champion, of challenger
        # A user in a step -> bits: 1 is counted in `units`, 2 is in the first watch, ...
        self._seen: dict[str, int] = {}

    def add(self, observations: Iterable[Observation]) -> None:
        """Add observations of this release, oldest first."""
        for observation in observations:
            if observation.step >= len(self.shares) or observation.version in self.others:
                continue  # answered after the last step; or by another challenger
            if not 0 < self.shares[observation.step] < 1:
                continue  # answered after the challenger was dropped
            challenger = observation.version == self.challenger
            self._count(observation, challenger)
            for number, watch in enumerate(self.watches, 1):
                value = harm_of(watch.guardrail, observation)
                if value is not None:
                    self._add(number, watch, observation, challenger, value)

    def breached(self) -> bool:
        """Return whether a guardrail is breached. Much faster than `harms`, without intervals."""
        return any(watch.differences.p_value <= self.plan.level for watch in self.watches)

    def harms(self) -> list[Harm]:
        """Return the state of every guardrail."""
        level = self.plan.level
        return [shown_harm(watch.guardrail, watch.differences, level) for watch in self.watches]

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
            "seen": self._seen,
            "watches": [watch.state() for watch in self.watches],
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.units = {step: (first, second) for step, (first, second) in state["units"]}
        self._seen = dict(state["seen"])
        for watch, own in zip(self.watches, state["watches"], strict=True):
            watch.restore(own, self.shares)

    def _again(self, observation: Observation, number: int) -> bool:
        """Return whether this user was met before in this step, and remember him.

        One whom a proxy sends to both arms counts in the first: else the rarer arm would go on to
        meet frequent users after the other has met them all, and they differ from the rest.
        """
        if not self.plan.sticky:
            return False  # each request is a unit of its own
        unit = f"{observation.step}{'+-'[observation.shadow]}{observation.unit}"
        bits = self._seen.get(unit, 0)
        self._seen[unit] = bits | 1 << number
        return bool(bits >> number & 1)

    def _count(self, observation: Observation, challenger: bool) -> None:
        if self._again(observation, 0):
            return
        champions, challengers = self.units.get(observation.step, (0, 0))
        self.units[observation.step] = (
            (champions, challengers + 1) if challenger else (champions + 1, challengers)
        )

    def _add(
        self,
        number: int,
        watch: GuardrailObservations,
        observation: Observation,
        challenger: bool,
        value: float,
    ) -> None:
        if self._again(observation, number):
            return  # a user's requests resemble each other: the first of a step counts
        limit = watch.limits[challenger]
        if watch.guardrail.name == QUALITY and not limit.admits(observation.key):
            return  # the sender of the tests decides what fails
        (watch.challenger if challenger else watch.champion).add(value)
        watch.pair(observation.step, self.shares, challenger, value)
