"""All challengers of a release, each compared with the champion.

In: a release and the observations. Out: one `ArmComparison` for each challenger. The observations
are read once, and a process that starts again continues the sum that it kept (checkpoint.py).
"""

from __future__ import annotations

import logging
from itertools import takewhile
from typing import Any

from resources.registry.releases import Release
from serving.gateway.observations import Observation, Observations
from serving.release.checkpoint import keep_sum, kept_sum
from serving.release.comparison import ArmComparison
from serving.release.plan import ReleasePlan, allocations, recorded_plan

EVERY = 20_000  # observations between two checkpoints
logger = logging.getLogger(__name__)


class FirstRequests:
    """The users that were seen. Of each the first request counts alone, whatever it carries.

    A user keeps his version, and the answer names it: after the first one he could choose requests
    that harm it. Shares change with the results, and requests of a user resemble each other.
    """

    def __init__(self, plan: ReleasePlan) -> None:
        self.plan = plan
        self.seen: set[str] = set()

    def admits(self, row: Observation) -> bool:
        if not self.plan.sticky:  # each request is a unit of its own, assigned by chance
            return True
        # While a shadow answers copies nobody sees a version, so what comes after it is new.
        steps = self.plan.steps
        unseen = not self.plan.experiment and row.step < len(steps) and steps[row.step].shadow
        unit = f"{'+-'[row.shadow]}{'=' * unseen}{row.unit}"
        new = unit not in self.seen
        self.seen.add(unit)
        return new


class Arms:
    """The comparisons of a release. read: number of the last observation; requests: how many there
    were; checkpoint: `read` as of the last one.
    """

    def __init__(self, release: Release) -> None:
        self.release, self.plan = release.id, recorded_plan(release)
        self._begun = False
        self._begin(release)

    def _begin(self, release: Release) -> None:
        """Forget all observations."""
        self.shares = allocations(release, self.plan)
        self.read = self.requests = self.checkpoint = 0
        self._first = FirstRequests(self.plan)
        self.comparisons = {
            version: ArmComparison(
                self.plan,
                version,
                shares_of(version, self.shares),
                set(release.challengers) - {version},
            )
            for version in release.challengers
        }

    @property
    def first(self) -> ArmComparison:
        """The comparison of the first challenger, the only one outside of experiments."""
        return next(iter(self.comparisons.values()))

    def running(self, step: int) -> list[int]:
        """Return the challengers that get traffic in a step."""
        if not self.plan.experiment:
            return list(self.comparisons)
        return [version for version, share in self.shares[step].items() if share]

    def follow(self, release: Release, observations: Observations) -> bool:
        """Add what was recorded since the last call; return whether there was anything.

        The first call continues from a checkpoint if there is one that is right.
        """
        self._update(release)
        if not self._begun and (state := kept_sum(release, observations)):
            try:
                self.restore(state)
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                logger.warning("all rows of %s are read again: %r in its sum", release.id, error)
                self._begin(release)  # a part of it may have been taken over
        self._begun = True
        rows = list(observations.read(self.read, self.release))
        if self.plan.experiment:  # another controller may have recorded a step since `release`
            rows = list(takewhile(lambda row: row[1].step < len(self.shares), rows))
        self.requests += len(rows)
        counted = [row for _, row in rows if self._first.admits(row)]
        for comparison in self.comparisons.values():
            comparison.add(counted)
        self.read = rows[-1][0] if rows else self.read
        return bool(rows)

    def save(self, release: Release, observations: Observations) -> None:
        """Keep the sum if it has grown by many observations."""
        if self.requests - self.checkpoint >= EVERY:
            self.checkpoint = self.requests
            keep_sum(release, observations, self.read, self.state())

    def state(self) -> dict[str, Any]:
        """Return all of it as JSON."""
        return {
            "read": self.read,
            "requests": self.requests,
            "seen": sorted(self._first.seen),
            "comparisons": [(v, each.state()) for v, each in self.comparisons.items()],
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.read, self.requests = state["read"], state["requests"]
        self.checkpoint = self.requests
        self._first.seen = set(state["seen"])
        for version, own in state["comparisons"]:
            self.comparisons[version].restore(own)

    def _update(self, release: Release) -> None:
        """Learn the shares of steps that were recorded meanwhile."""
        self.shares = allocations(release, self.plan)
        for version, comparison in self.comparisons.items():
            comparison.shares = shares_of(version, self.shares)


def shares_of(version: int, shares: list[dict[int, float]]) -> list[float]:
    """Return a challenger's share of the requests that it and the champion get, for each step."""
    own = [step.get(version, 0.0) for step in shares]
    champion = [max(0.0, 1 - sum(step.values())) for step in shares]
    return [one / (one + rest) if one else 0.0 for one, rest in zip(own, champion, strict=True)]
