"""The controller: moves the open release forward, or takes it back.

In: the record of releases, the ledger, the observations. Out: events in the record. It keeps no
state of its own: after `kill -9` another process reads the same rows and decides the same. Several
may run at once; an event names the one that it follows, so one of them acts.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event as Stop

from resources.registry.ledger import Ledger, LedgerChanged, champions
from resources.registry.ledger_database import LedgerUnreachable
from resources.registry.releases import Event, Release, ReleaseMoved, Releases
from serving.experiment.decision import ExperimentDecision, decide, pairs_text
from serving.gateway.observations import Observations
from serving.gateway.replicas import GatewayReplicas
from serving.release.arms import Arms
from serving.release.evidence import (
    analyses_of,
    decision_of,
    evidence_of,
    undecided_for,
    waiting_for,
)
from serving.release.experiment import Action, breach_in, next_of
from serving.release.step_clock import StepClock

RETRYABLE = (LedgerUnreachable, LedgerChanged, sqlite3.Error, OSError)
logger = logging.getLogger(__name__)


@dataclass
class ReleaseProgress:
    """What is known of one release. look_at: when all of its observations may be read again, on a
    clock that never goes back.
    """

    release: str
    arms: Arms
    look_at: float = 0.0


class Controller:
    """Moves the open release forward, or takes it back.

    clock: seconds since 1970, as the record has them. replicas: the gateways of this home.
    """

    def __init__(
        self,
        releases: Releases,
        ledger: Ledger,
        observations: Observations,
        clock: Callable[[], float] = time.time,
        replicas: GatewayReplicas | None = None,
    ) -> None:
        self.releases, self.ledger, self.observations = releases, ledger, observations
        self.clock, self.replicas = clock, replicas
        self.step_clock = StepClock()
        self._progress: ReleaseProgress | None = None

    def run(
        self, stop: Stop, then: Callable[[], None] = lambda: None, every_s: float = 0.5
    ) -> None:
        """Call `tick` and `then` until stopped. A database that cannot be used is tried again."""
        fault = ""
        while not stop.is_set():
            try:
                self.tick()
                fault = ""
            except RETRYABLE as error:
                if str(error) != fault:  # once, not twice a second
                    logger.warning("the release waits: %s", error)
                fault = str(error)
            except Exception:  # without this thread nothing is rolled back any more
                logger.exception("the release could not be looked at")
            then()
            stop.wait(every_s)

    def tick(self) -> Event | None:
        """Look once, and return the event that was recorded, if any."""
        release = self.releases.current()
        if release is None:
            self._progress = None
            return None
        action = self._next(release, self.progress(release))
        if action is None:
            return None
        kind, step, detail = action
        try:
            event = self.releases.append(release.last, kind, detail, step=step)
        except ReleaseMoved:
            return None  # another controller or a person acted first: look again
        logger.info("%s: %s (%s)", release.id, kind, " ".join(detail["reasons"]))
        return event

    def progress(self, release: Release) -> ReleaseProgress:
        """Return what is known of a release, with the newest observations."""
        progress = self._progress
        if progress is None or progress.release != release.id:
            progress = ReleaseProgress(release.id, Arms(release))
            self._progress = progress
        arms = progress.arms
        if arms.follow(release, self.observations):
            arms.save(release, self.observations)
        return progress

    def _next(self, release: Release, progress: ReleaseProgress) -> Action | None:
        """Return the event to record now: kind, step, detail."""
        arms, step = progress.arms, release.step
        if fault := self._fault(release, arms):
            return "aborted", step, {"reasons": [fault], **evidence_of(arms)}
        if arms.plan.experiment:
            if breach := breach_in(release, arms):
                return breach
        elif arms.first.breached():
            decision = decide(arms.first.harms(), None)
            return "rolled_back", step, {"reasons": list(decision.reasons), **evidence_of(arms)}
        if release.state == "paused":
            return None
        if not arms.plan.steps:
            return "promoted", 0, {"reasons": ["The plan has no steps."]}
        ran_s = self.step_clock.ran(release, self.clock())
        over = _agreed(release) or not waiting_for(release, arms, ran_s)
        if over and (action := self._forward(release, progress)):
            return action
        if reason := undecided_for(release, arms, self.clock()):
            return self._undecided(release, arms, reason)
        return None

    def _fault(self, release: Release, arms: Arms) -> str:
        """Return why a version cannot answer any more; "" if all can."""
        known = {entry.version for entry in champions(self.ledger.history())}
        running = arms.running(release.step)
        for version in (*running, release.champion):  # another champion is another comparison
            if version not in known:
                return f"Version {version} was rolled back in the ledger."
        for version in running:
            if self.replicas is None:
                continue
            # An older fault may have been repaired since then.
            reason = self.replicas.failing(
                version, release.events[0].time, arms.plan.failed_gateways
            )
            if reason:
                return f"The challenger cannot be loaded: {reason}"
        return ""

    def _forward(self, release: Release, progress: ReleaseProgress) -> Action | None:
        """Return the event after a step that has lasted long enough."""
        arms, plan, step = progress.arms, progress.arms.plan, release.step
        if plan.experiment:
            return self._seldom(progress, lambda: next_of(release, arms, self.observations))
        now, pairs = plan.steps[step], arms.first.pairs(step)
        reasons = [f"{now.title}: no guardrail was breached in {pairs_text(pairs)}."]
        if now.watch:
            return "promoted", step, {"reasons": reasons, **evidence_of(arms)}
        if now.shadow and _agreed(release):
            return "step", step + 1, {"reasons": ["A person agreed."], **evidence_of(arms)}
        if not plan.decides(step):
            return "step", step + 1, {"reasons": reasons, **evidence_of(arms)}
        if not arms.first.cleared():
            return None
        if plan.gain is None:
            return self._decided(release, arms, decision_of(arms.first, None))
        return self._seldom(progress, lambda: self._gained(release, arms))

    def _gained(self, release: Release, arms: Arms) -> Action | None:
        analysis = analyses_of(release, arms, self.observations)[release.challenger]
        return self._decided(release, arms, decision_of(arms.first, analysis)) if analysis else None

    def _decided(self, release: Release, arms: Arms, decision: ExperimentDecision) -> Action | None:
        """Return the event of a decision at the step that decides; None while it waits."""
        step, detail = release.step, {"reasons": list(decision.reasons), **evidence_of(arms)}
        if decision.kind == "continue":
            return None
        if decision.kind == "keep":
            return "rolled_back", step, detail
        if arms.plan.steps[step].shadow:
            ask = "The shadow is no worse: resume to go on, or abort."
            return "paused", step, detail | {"reasons": [ask, *decision.reasons]}
        return "step", step + 1, detail

    def _undecided(self, release: Release, arms: Arms, reason: str) -> Action:
        """Return the end of a release that shows neither harm nor its absence in time. After a
        shadow, which harms nobody, a person is asked.
        """
        reasons = [reason]
        if not arms.plan.experiment:
            reasons += decision_of(arms.first, None).reasons
        if not arms.plan.experiment and arms.plan.steps[release.step].shadow:
            ask = "Resume to go on all the same, or abort."
            return "paused", release.step, {"reasons": [*reasons, ask], **evidence_of(arms)}
        return "aborted", release.step, {"undecided": True, "reasons": reasons, **evidence_of(arms)}

    def _seldom(
        self, progress: ReleaseProgress, look: Callable[[], Action | None]
    ) -> Action | None:
        """Return the result of a look that reads all observations. Looks without a result take a
        tenth of the time at most.
        """
        if (began := time.monotonic()) < progress.look_at:
            return None
        action = look()
        now = time.monotonic()
        progress.look_at = 0.0 if action else now + 10 * (now - began)
        return action


def _agreed(release: Release) -> bool:
    """Return whether a person resumed the release after its shadow had answered enough."""
    asked = any(e.kind == "paused" and "guardrails" in e.detail for e in release.events)
    return asked and release.last.kind == "resumed"
