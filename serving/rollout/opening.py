"""Open a rollout for a version, by hand or automatically.

In: the ledger, the record, the settings. Out: the recorded rollout.
"""

from __future__ import annotations

from resources.config.rollout import RolloutSettings, Strategy
from resources.registry.ledger import Ledger, champions, named
from resources.registry.rollouts import NoRollout, Rollout, Rollouts, deployed
from serving.rollout.plan import plan_of


def open_rollout(
    ledger: Ledger,
    rollouts: Rollouts,
    settings: RolloutSettings,
    version: int,
    *,
    strategy: Strategy | None = None,
    why: str,
    cause: str = "",
) -> Rollout:
    """Record a rollout of this version against the deployed one, and return it.

    The first rollout compares with the champion before. Raises NoRollout where the version may not
    be deployed or answers already.
    """
    stack = {entry.version: entry for entry in champions(ledger.history())}
    if version not in stack:
        raise NoRollout(
            f"version {version} is no champion, or was rolled back: `ratchet promote` decides on it"
        )
    known = rollouts.all()
    now = deployed(known)
    if now not in stack:
        earlier = [other for other in stack if other != version]
        now = earlier[-1] if earlier else version
    if now == version:
        raise NoRollout(f"{named(stack[version])} answers all requests already")
    plan = plan_of(settings, strategy or settings.strategy, len(known) + 1)
    return rollouts.open(now, version, plan.model_dump(mode="json"), why=why, cause=cause)
