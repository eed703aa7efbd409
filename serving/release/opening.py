"""Open a release for a version, or an experiment with several, by hand or automatically.

In: the ledger, the record, the settings. Out: the recorded release.
"""

from __future__ import annotations

from resources.config.release import ReleaseSettings, Strategy
from resources.registry.ledger import Ledger, champions, named
from resources.registry.releases import NoRelease, Release, Releases, deployed
from serving.release.plan import plan_of


def open_release(
    ledger: Ledger,
    releases: Releases,
    settings: ReleaseSettings,
    *versions: int,
    strategy: Strategy | None = None,
    why: str,
    cause: str = "",
) -> Release:
    """Record a release of this version against the deployed one, and return it. Several versions
    are an experiment.

    The first release compares with the champion before. Raises NoRelease where a version may not
    be deployed or answers already.
    """
    stack = {entry.version: entry for entry in champions(ledger.history())}
    if other := next((version for version in versions if version not in stack), None):
        raise NoRelease(
            f"version {other} is no champion, or was rolled back: `ratchet promote` decides on it"
        )
    known = releases.all()
    now = deployed(known)
    if now not in stack:
        earlier = [other for other in stack if other not in versions]
        now = earlier[-1] if earlier else versions[0]
    if now in versions:
        raise NoRelease(f"{named(stack[now])} answers all requests already")
    challengers = tuple(dict.fromkeys(versions))
    plan = plan_of(
        settings, _strategy(settings, strategy, challengers), len(known) + 1, len(challengers)
    )
    first, *others = challengers
    shown = plan.model_dump(mode="json")
    return releases.open(now, first, shown, why=why, cause=cause, others=others)


def _strategy(
    settings: ReleaseSettings, strategy: Strategy | None, challengers: tuple[int, ...]
) -> Strategy:
    if len(challengers) == 1:
        return strategy or settings.strategy
    if strategy not in (None, "experiment"):
        raise NoRelease(f"{strategy} is for one version: several are an experiment")
    return "experiment"
