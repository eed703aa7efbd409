"""The router of a gateway with releases: which version answers a request.

In: the record of releases and the ledger, read in the background. Out: a `Choice` for each request,
from memory.
"""

from __future__ import annotations

import logging
import secrets
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from resources.registry.ledger import Ledger, LedgerChanged, champions
from resources.registry.ledger_database import LedgerUnreachable
from resources.registry.releases import Releases, deployed
from serving.experiment.assignment import CHAMPION, assigned
from serving.gateway.routing import Choice
from serving.release.plan import allocations, recorded_plan

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Traffic:
    """Where requests go at present. champion: version; 0 where it is the ledger's champion.
    shares: challenger -> its share. salt: secret of the assignment.
    """

    champion: int = 0
    shares: Mapping[int, float] = field(default_factory=dict)
    release: str = ""
    step: int = 0
    shadow: bool = False
    sticky: bool = True
    salt: str = field(default="", repr=False)


class ReleaseRouter:
    """Chooses the version that answers a request while releases run.

    champion: returns the version that answers as the ledger's champion; raises LookupError without
    one. loaded: returns the versions that can answer; None: all. Until all challengers can,
    requests are outside of the release. Traffic is as last known where the record cannot be read;
    until it was read once, no version answers: the ledger's champion may be the one that a release
    took back.
    """

    def __init__(
        self,
        releases: Releases,
        ledger: Ledger,
        champion: Callable[[], int],
        loaded: Callable[[], AbstractSet[int]] | None = None,
    ) -> None:
        self.releases, self.ledger, self.champion = releases, ledger, champion
        self.loaded = loaded
        self.traffic: Traffic | None = None
        self.fault = ""  # why the record could not be read
        self.refresh()

    def choose(self, key: str) -> Choice:
        """Return the version that answers this request. Raises LookupError without a champion."""
        now = self._known()
        champion = now.champion or self.champion()
        if not now.release or (self.loaded and not self.loaded() >= now.shares.keys()):
            return Choice(champion)
        if now.shadow:
            return Choice(champion, CHAMPION, 1.0, now.release, now.step, tuple(now.shares))
        unit = key if now.sticky else secrets.token_hex(8)
        versions = {f"version {version}": version for version in now.shares}
        arm = assigned(now.salt, unit, dict(zip(versions, now.shares.values(), strict=True)))
        if arm == CHAMPION:
            rest = 1 - sum(now.shares.values())
            return Choice(champion, arm, rest, now.release, now.step)
        version = versions[arm]
        return Choice(version, arm, now.shares[version], now.release, now.step)

    def versions(self) -> Sequence[int]:
        """Return the versions that must be loaded, the champion first. Raises LookupError."""
        now = self._known()
        champion = now.champion or self.champion()
        return [champion, *now.shares]

    @property
    def shares(self) -> Mapping[int, float]:
        """Share of the traffic of each challenger at present; a shadow has none."""
        now = self.traffic
        return {} if now is None else {v: 0.0 if now.shadow else s for v, s in now.shares.items()}

    def refresh(self) -> None:
        """Read the record now. A database that cannot be used changes nothing."""
        try:
            self.traffic, self.fault = self._read(), ""
        except (LedgerUnreachable, LedgerChanged, sqlite3.Error, OSError) as error:
            if str(error) != self.fault:  # once, not twice a second
                logger.warning("requests go where they went: %s", error)
            self.fault = str(error)

    def _known(self) -> Traffic:
        if self.traffic is None:
            raise LookupError(self.fault)
        return self.traffic

    def _read(self) -> Traffic:
        releases = self.releases.all()
        if not releases:
            return Traffic()
        stack = champions(self.ledger.history())
        restorable = {entry.version for entry in stack}
        champion = deployed(releases) or 0
        if champion not in restorable or champion == stack[-1].version:
            champion = 0  # undone in the ledger, or its champion anyway
        now = next((release for release in releases if release.open), None)
        if now is None:
            return Traffic(champion)
        plan = recorded_plan(now)
        if not plan.steps:
            return Traffic(champion)
        step = allocations(now, plan)[now.step]
        shares = {version: share for version, share in step.items() if share}
        if not shares.keys() <= restorable:
            return Traffic(champion)
        shadow = not plan.experiment and plan.steps[now.step].shadow
        return Traffic(
            champion=champion,
            shares=shares,
            release=now.id,
            step=now.step,
            shadow=shadow,
            sticky=plan.sticky,
            salt=now.salt,
        )
