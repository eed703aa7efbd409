"""One guardrail of a release: the value of each request, pairs, means, and the limit of a key.

In: observations of the champion and of a challenger. Out: the state of the guardrail. What a client
decides himself is no evidence: that a prompt is too long, that he left, and the form of an answer
that his tools, stop words or few tokens have shaped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from evaluation.statistics.online.pairs import Pair, Pairing, epochs
from evaluation.statistics.online.running_sequence import RunningSequence
from serving.experiment.feedback import KeyLimit
from serving.experiment.guardrail import Guardrail, Harm, HarmSequence
from serving.experiment.slow import Percentile, difference
from serving.gateway.observations import Observation
from serving.release.plan import ERRORS, FIRST_TOKEN, QUALITY, REFUSALS, TOKENS, ReleasePlan

FAILURES = ("timeout", "engine", "unavailable")  # errors that a version is responsible for
# No version is responsible: the queue was full, the gateway stood still, the prompt was too long.
OTHERS = ("overloaded", "suspended", "refused")
LONGEST_S = 60.0  # a longer answer counts as this in the means that are shown
Item = tuple[float, str]  # value, key


def harm_of(guardrail: Guardrail, observation: Observation) -> float | None:
    """Return what a request cost its user, in the guardrail's unit; None where it says nothing."""
    name, error = guardrail.name, observation.error
    if name == QUALITY:
        return None if observation.verified is None else float(not observation.verified)
    if error in OTHERS or error == "gone":
        return None
    if name == ERRORS:
        return float(error in FAILURES)
    if error in FAILURES:
        return None  # a broken-off answer is neither short nor polite
    if name == FIRST_TOKEN and not observation.shadow:
        seconds = observation.first_token_s
        return None if seconds is None else max(0.0, seconds)
    if error == "shaped":
        return None
    if name == REFUSALS:
        return float(error == "declined")
    if name == TOKENS:
        return min(float(observation.completion_tokens), guardrail.high)
    # A shadow waits for real requests: its seconds are not comparable. A clock may jump.
    return None if observation.shadow else max(0.0, observation.total_s)


class GuardrailWatch:
    """What one guardrail has seen. by_step: pairs in each step; champion, challenger: the values of
    both, for their means; limits: of users a key, for the champion and the challenger.
    """

    def __init__(self, guardrail: Guardrail, plan: ReleasePlan) -> None:
        self.guardrail, self.plan = guardrail, plan
        self.differences = HarmSequence(guardrail)
        high = guardrail.high if guardrail.ratio is None else LONGEST_S
        self.high = high
        self.champion, self.challenger = RunningSequence(0, high), RunningSequence(0, high)
        self.by_step: Counter[int] = Counter()
        self.pairings: dict[int, Pairing[Item]] = {}
        self.percentile = Percentile()
        self.limits = [KeyLimit(plan.key_share) for _ in range(2)]

    def add(self, observation: Observation, shares: Sequence[float], challenger: bool) -> None:
        """Add a request. shares: of the challenger in each step."""
        value = harm_of(self.guardrail, observation)
        key = "" if observation.key in self.plan.trusted else observation.key
        if value is None or not self.limits[challenger].admits(key):
            return
        (self.challenger if challenger else self.champion).add(min(value, self.high))
        epoch = epochs(shares)[observation.step] if len(shares) > 1 else observation.step
        pairing = self.pairings.setdefault(epoch, Pairing(shares[epoch]))
        pair = pairing.add(challenger, (value, key))
        if pair and self._close(pair):
            self.by_step[observation.step] += 1

    def harm(self) -> Harm:
        return self.differences.harm(self.plan.level, self.plan.alpha)

    def _close(self, pair: Pair[Item]) -> bool:
        """Add the difference of a pair, and what it is without each key; return whether there is
        one.
        """
        sides = [[value for value, _ in side] for side in pair]
        keys = [[key for _, key in side] for side in pair]
        if self.guardrail.ratio is not None:
            judged = self.percentile.judge(sides[0], sides[1], self.guardrail.ratio)
            if judged is None:
                return False
            sides = list(judged)
        without = {
            key: difference(*(
                [value for value, own in zip(values, names, strict=True) if own != key]
                for values, names in zip(sides, keys, strict=True)
            ))
            for key in {*keys[0], *keys[1]} - {""}
        }  # fmt: skip
        whole = difference(*sides)
        assert whole is not None
        self.differences.add(whole, without)
        return True

    def state(self) -> dict[str, Any]:
        """Return all of it as JSON."""
        return {
            "differences": self.differences.state(),
            "means": [self.champion.state(), self.challenger.state()],
            "by_step": list(self.by_step.items()),
            "pairings": [(step, pairing.state()) for step, pairing in self.pairings.items()],
            "times": list(self.percentile.times),
            "limits": [limit.state() for limit in self.limits],
        }

    def restore(self, state: dict[str, Any], shares: Sequence[float]) -> None:
        self.differences.restore(state["differences"])
        for sequence, own in zip((self.champion, self.challenger), state["means"], strict=True):
            sequence.restore(own)
        self.by_step = Counter(dict(state["by_step"]))
        self.pairings = {step: Pairing(shares[step]) for step, _ in state["pairings"]}
        for step, own in state["pairings"]:
            self.pairings[step].restore(own)
        self.percentile = Percentile(state["times"])
        for limit, (counted, left_out) in zip(self.limits, state["limits"], strict=True):
            limit.restore(counted, left_out)
