"""`/releases/{name}/analysis`: a release in a few fields, for programs that split the traffic, such
as Argo Rollouts with its web metric.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel

from resources.home import Home
from resources.registry.ledger import Ledger
from resources.registry.releases import Release, Releases
from serving.gateway.observations import Observations
from serving.release.manifests import shares_of
from serving.release.page import found
from serving.release.view import Views


class ReleaseHealth(BaseModel):
    """The state of a release in a few fields.

    healthy: no guardrail is breached, and nobody ended the release without a promotion. shares:
    version -> its share of the traffic now. decision: what the requests support by now.
    """

    release: str
    state: str
    step: int
    healthy: bool
    shares: dict[int, float]
    decision: str
    reasons: list[str]


def analysis_routes(home: Home, ledger: Ledger) -> APIRouter:
    """Return the route. It reads the databases in a thread."""
    routes = APIRouter(tags=["Releases"])
    releases, views = Releases(ledger.place), Views(Observations(home.observations, home.database))

    @routes.get("/releases/{name}/analysis")
    def analysis(name: str) -> ReleaseHealth:
        """Whether a release may continue, and the share of each version. `latest`: the newest."""
        release = found(releases, name)
        return analysis_of(release, views.of(release))

    return routes


def analysis_of(release: Release, view: dict[str, Any]) -> ReleaseHealth:
    """Return the analysis of a release. view: of `details`."""
    compared = [row for arm in view["arms"] if arm["share"] for row in arm["guardrails"]]
    breached = any(row["p_value"] <= row["level"] for row in compared)
    return ReleaseHealth(
        release=release.id,
        state=release.state,
        step=release.step,
        healthy=not breached and release.state in ("running", "paused", "promoted"),
        shares=shares_of(release),
        decision=view["decision"]["kind"],
        reasons=view["decision"]["reasons"],
    )
