"""Open a release for a version, or an experiment with several, by hand or automatically.

In: the ledger, the record, the settings. Out: the recorded release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from resources.config.release import ReleaseSettings, Strategy
from resources.home import Home
from resources.registry.ledger import Ledger, champions, named
from resources.registry.releases import NoRelease, Release, Releases, deployed
from serving.gateway.keys import Keys
from serving.release.plan import ReleasePlan, plan_of


@dataclass(frozen=True)
class ReleaseProposal:
    """A release that may be opened. answering: the version that answers all requests now."""

    champion: int
    challengers: tuple[int, ...]
    plan: ReleasePlan
    answering: int

    def open(self, releases: Releases, why: str, cause: str = "") -> Release:
        """Record the release. Raises NoRelease while another one is open."""
        first, *others = self.challengers
        shown = self.plan.model_dump(mode="json")
        return releases.open(self.champion, first, shown, why=why, cause=cause, others=others)


def propose(
    ledger: Ledger,
    releases: Releases,
    settings: ReleaseSettings,
    *versions: int,
    strategy: Strategy | None = None,
    trusted: Sequence[str] = (),
) -> ReleaseProposal:
    """Return the release of this version against the deployed one; several versions are an
    experiment. trusted: ids of API keys.

    The first release compares with the champion before. Raises NoRelease where a version may not
    be deployed or answers already.
    """
    stack = {entry.version: entry for entry in champions(ledger.history())}
    if other := next((version for version in versions if version not in stack), None):
        raise NoRelease(
            f"version {other} is no champion, or was rolled back: `ratchet promote` decides on it"
        )
    known = releases.all()
    now = answering = deployed(known)
    if now not in stack:
        answering = list(stack)[-1]
        earlier = [other for other in stack if other not in versions]
        now = earlier[-1] if earlier else versions[0]
    assert now is not None
    assert answering is not None
    if now in versions:
        raise NoRelease(f"{named(stack[now])} answers all requests already")
    challengers = tuple(dict.fromkeys(versions))
    chosen = _strategy(settings, strategy, challengers)
    plan = plan_of(settings, chosen, len(known) + 1, len(challengers), trusted)
    return ReleaseProposal(now, challengers, plan, answering)


def trusted_keys(home: Home, settings: ReleaseSettings) -> list[str]:
    """Return the ids of the API keys that count without limit: those of operators, the ones that
    the settings name, and the only one of a home. Raises NoRelease for a name without a key.
    """
    keys = Keys(home.api_keys).all()
    names = {key.name for key in keys}
    if missing := [name for name in settings.trusted_keys if name not in names]:
        raise NoRelease(
            f"release.trusted_keys: there is no key {missing[0]!r}: `ratchet keys list` shows them"
        )
    users = [key for key in keys if key.role == "user"]
    return [
        key.id
        for key in keys
        if key not in users or key.name in settings.trusted_keys or len(users) == 1
    ]


def _strategy(
    settings: ReleaseSettings, strategy: Strategy | None, challengers: tuple[int, ...]
) -> Strategy:
    if len(challengers) == 1:
        return strategy or settings.strategy
    if strategy not in (None, "experiment"):
        raise NoRelease(f"{strategy} is for one version: several are an experiment")
    return "experiment"
