"""`/rollouts/{name}/analysis`: a rollout in a few fields, for programs that split the traffic, such
as Argo Rollouts with its web metric.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, HTTPException
from pydantic import BaseModel

from resources.home import Home
from resources.registry.ledger import Ledger
from resources.registry.rollouts import Rollout, Rollouts
from serving.gateway.observations import Observations
from serving.rollout.manifests import shares_of
from serving.rollout.page import readable
from serving.rollout.plan import OtherPlan
from serving.rollout.view import Views


class Analysis(BaseModel):
    """healthy: no guardrail is breached, and nobody ended the rollout without a promotion. shares:
    version -> its share of the traffic now. decision: what the requests support by now.
    """

    rollout: str
    state: str
    step: int
    healthy: bool
    shares: dict[int, float]
    decision: str
    reasons: list[str]


def analysis_routes(home: Home, ledger: Ledger) -> APIRouter:
    """Return the route. It reads the databases in a thread."""
    routes = APIRouter(tags=["Rollouts"])
    rollouts, views = Rollouts(ledger.place), Views(Observations(home.observations))

    @routes.get("/rollouts/{name}/analysis")
    def analysis(name: str) -> Analysis:
        """Whether a rollout may continue, and the share of each version. `latest`: the newest."""
        with readable():
            known = rollouts.all()
        rollout = next((r for r in known[::-1] if name in (r.id, "latest")), None)
        if rollout is None:
            raise HTTPException(404, f"no rollout {name[:80]!r}")
        return analysis_of(rollout, views.of(rollout))

    return routes


def analysis_of(rollout: Rollout, view: dict[str, Any]) -> Analysis:
    """Return the analysis of a rollout. view: of `details`."""
    compared = [row for arm in view["arms"] if arm["share"] for row in arm["guardrails"]]
    breached = any(row["p_value"] <= row["level"] for row in compared)
    try:
        shares = shares_of(rollout)
    except OtherPlan:
        shares = {rollout.champion: 1.0, **dict.fromkeys(rollout.challengers, 0.0)}
    return Analysis(
        rollout=rollout.id,
        state=rollout.state,
        step=rollout.step,
        healthy=not breached and rollout.state in ("running", "paused", "promoted"),
        shares=shares,
        decision=view["decision"]["kind"],
        reasons=view["decision"]["reasons"],
    )
