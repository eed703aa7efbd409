"""The controller: moves the open rollout forward, or takes it back.

In: the record of rollouts, the ledger, the observations. Out: events in the record. It keeps no
state of its own: after `kill -9` another process reads the same rows and decides the same. Several
may run at once; an event names the one that it follows, so one of them acts.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Event as Stop
from typing import Any

from resources.registry.ledger import Ledger, LedgerChanged, champions
from resources.registry.ledger_database import LedgerUnreachable
from resources.registry.rollouts import Event, Kind, Rollout, RolloutMoved, Rollouts
from serving.experiment.decision import decide
from serving.gateway.catalog import Fault
from serving.gateway.observations import Observations
from serving.rollout.comparison import Comparison
from serving.rollout.evidence import analysis_of, decision_of, guardrails_of, waiting_for
from serving.rollout.plan import OtherPlan, recorded_plan
from serving.rollout.step_clock import StepClock

RETRYABLE = (LedgerUnreachable, LedgerChanged, sqlite3.Error, OSError)
logger = logging.getLogger(__name__)


@dataclass
class Progress:
    """What is known of one rollout. breached: whether it shows a breach."""

    rollout: str
    comparison: Comparison
    breached: bool = False

    def evidence(self) -> dict[str, Any]:
        """Return the state of the guardrails as JSON."""
        return {
            "guardrails": guardrails_of(self.comparison),
            "observations": self.comparison.read,
        }


class Controller:
    """clock: seconds since 1970, as the record has them. faults: version -> why it could not be
    loaded when this process last tried.
    """

    def __init__(
        self,
        rollouts: Rollouts,
        ledger: Ledger,
        observations: Observations,
        clock: Callable[[], float] = time.time,
        faults: Mapping[int, Fault] | None = None,
    ) -> None:
        self.rollouts, self.ledger, self.observations = rollouts, ledger, observations
        self.clock, self.faults = clock, {} if faults is None else faults
        self.step_clock = StepClock()
        self._progress: Progress | None = None

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
                    logger.warning("the rollout waits: %s", error)
                fault = str(error)
            except Exception:  # without this thread nothing is rolled back any more
                logger.exception("the rollout could not be looked at")
            then()
            stop.wait(every_s)

    def tick(self) -> Event | None:
        """Look once, and return the event that was recorded, if any."""
        rollout = self.rollouts.current()
        if rollout is None:
            self._progress = None
            return None
        action = self._action(rollout)
        if action is None:
            return None
        kind, step, detail = action
        try:
            event = self.rollouts.append(rollout.last, kind, detail, step=step)
        except RolloutMoved:
            return None  # another controller or a person acted first: look again
        logger.info("%s: %s (%s)", rollout.id, kind, " ".join(detail["reasons"]))
        return event

    def _action(self, rollout: Rollout) -> tuple[Kind, int, dict[str, Any]] | None:
        """Return the event to record now: kind, step, detail."""
        try:
            progress = self.progress(rollout)
        except OtherPlan as error:
            return "aborted", rollout.step, {"reasons": [str(error)]}
        return self._next(rollout, progress)

    def progress(self, rollout: Rollout) -> Progress:
        """Return what is known of a rollout, with the newest observations. Raises OtherPlan."""
        progress = self._progress
        if progress is None or progress.rollout != rollout.id:
            progress = Progress(rollout.id, Comparison(recorded_plan(rollout), rollout.challenger))
            self._progress = progress
        if progress.comparison.follow(rollout.id, self.observations):
            progress.breached = progress.comparison.breached()
        return progress

    def _next(
        self, rollout: Rollout, progress: Progress
    ) -> tuple[Kind, int, dict[str, Any]] | None:
        plan, step = progress.comparison.plan, rollout.step
        if rollout.challenger not in {entry.version for entry in champions(self.ledger.history())}:
            reason = f"Version {rollout.challenger} was rolled back in the ledger."
            return "aborted", step, {"reasons": [reason]}
        fault = self.faults.get(rollout.challenger)
        if fault and fault.at > rollout.events[0].time:  # it may have been repaired since then
            reason = f"The challenger cannot be loaded: {fault.reason}"
            return "aborted", step, {"reasons": [reason], **progress.evidence()}
        if progress.breached:
            decision = decide(progress.comparison.harms(), None)
            return "rolled_back", step, {"reasons": list(decision.reasons), **progress.evidence()}
        if rollout.state == "paused":
            return None
        if not plan.steps:
            return "promoted", 0, {"reasons": ["The plan has no steps."]}
        now = self.step_clock.now(rollout, self.clock())
        if waiting_for(rollout, progress.comparison, now):
            return None
        present = plan.steps[step]
        if present.shadow and rollout.last.kind != "resumed":
            reason = "The shadow has answered enough: resume to promote it, or abort."
            return "paused", step, {"reasons": [reason], **progress.evidence()}
        pairs = progress.comparison.pairs(step)
        reasons = [f"{present.title}: no guardrail was breached in {pairs} pairs."]
        if step + 1 < len(plan.steps):
            return "step", step + 1, {"reasons": reasons, **progress.evidence()}
        if plan.gain is None:
            return "promoted", step, {"reasons": reasons, **progress.evidence()}
        analysis = analysis_of(rollout, progress.comparison, self.observations)
        decision = decision_of(progress.comparison, analysis)
        if decision.kind == "continue" or analysis is None:
            return None
        end: Kind = "promoted" if decision.kind == "deploy" else "rolled_back"
        return end, step, {"reasons": list(decision.reasons), **progress.evidence()}
