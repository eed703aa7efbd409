"""The router of a gateway with rollouts: which version answers a request.

In: the record of rollouts and the ledger, read in the background. Out: a `Choice` for each request,
from memory. A change of the record is followed within `EVERY_S`.
"""

from __future__ import annotations

import logging
import secrets
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Event as Stop

from resources.registry.ledger import Ledger, LedgerChanged, champions
from resources.registry.ledger_database import LedgerUnreachable
from resources.registry.rollouts import Rollouts, deployed
from serving.experiment.assignment import CHAMPION, assigned
from serving.gateway.routing import Choice
from serving.rollout.plan import Plan

EVERY_S = 0.5
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Traffic:
    """Where requests go at present. champion: version; 0 without a champion."""

    champion: int
    challenger: int = 0
    rollout: str = ""
    step: int = 0
    share: float = 0.0
    shadow: bool = False
    sticky: bool = True


class RolloutRouter:
    """Raises what the ledger raises when it is created, and later keeps the last known traffic."""

    def __init__(self, rollouts: Rollouts, ledger: Ledger) -> None:
        self.rollouts, self.ledger = rollouts, ledger
        self.traffic = self._read()

    def choose(self, key: str) -> Choice:
        """Return the version that answers this request. Raises LookupError without a champion."""
        now = self.traffic
        if not now.champion:
            raise LookupError("no champion yet: run `ratchet demo` to train and promote one")
        if not now.rollout:
            return Choice(now.champion)
        if now.shadow:
            shadows = (now.challenger,)
            return Choice(now.champion, CHAMPION, 1.0, now.rollout, now.step, shadows)
        unit = key if now.sticky else secrets.token_hex(8)
        name = f"version {now.challenger}"
        arm = assigned(now.rollout, unit, {name: now.share})
        version, share = (
            (now.champion, 1 - now.share) if arm == CHAMPION else (now.challenger, now.share)
        )
        return Choice(version, arm, share, now.rollout, now.step)

    def versions(self) -> Sequence[int]:
        """Return the versions that must be loaded, the champion first."""
        now = self.traffic
        return [version for version in (now.champion, now.challenger) if version]

    def refresh(self) -> None:
        """Read the record now. A database that cannot be used changes nothing."""
        try:
            self.traffic = self._read()
        except (LedgerUnreachable, LedgerChanged, sqlite3.Error, OSError) as error:
            logger.warning("requests go where they went: %s", error)

    def run(self, stop: Stop, every_s: float = EVERY_S) -> None:
        """Call `refresh` until stopped."""
        while not stop.wait(every_s):
            self.refresh()

    def _read(self) -> Traffic:
        stack = champions(self.ledger.history())
        if not stack:
            return Traffic(0)
        rollouts = self.rollouts.all()
        restorable = {entry.version for entry in stack}
        champion = deployed(rollouts)
        if champion not in restorable or champion is None:
            champion = stack[-1].version  # none deployed, or undone in the ledger
        now = next((rollout for rollout in rollouts if rollout.open), None)
        if now is None or now.challenger not in restorable or not now.plan["steps"]:
            return Traffic(champion)
        plan = Plan.model_validate(now.plan)
        step = plan.steps[now.step]
        return Traffic(
            champion, now.challenger, now.id, now.step, step.share, step.shadow, plan.sticky
        )
