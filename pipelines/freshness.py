"""Freshness policies: how old a decision and scores may be, by the schedules that renew them.

In: the profile's cron expressions. Out: assets whose state (fresh, late, overdue) the UI shows.
"""

from __future__ import annotations

from collections.abc import Iterable

import dagster as dg

from assets.contestant_scores import contestant_scores
from assets.promotion import promoted_model
from pipelines.intervals import longest_interval
from pipelines.schedules import CRON
from resources.config.profile import Automation


def renewed_by(cron: str) -> dg.FreshnessPolicy:
    """Return a policy that warns half an interval after a missed run of the schedule, and fails
    when the next two are missing too.
    """
    interval = longest_interval(cron)
    return dg.FreshnessPolicy.time_window(fail_window=3 * interval, warn_window=1.5 * interval)


def policies(automation: Automation) -> dict[dg.AssetKey, dg.FreshnessPolicy]:
    """Return the policies of what a schedule renews that is on from the start."""
    scores = {contestant_scores.key: renewed_by(automation.daily)}
    return scores | (
        {promoted_model.key: renewed_by(automation.nightly)} if automation.retrain else {}
    )


def with_freshness(assets: Iterable[dg.AssetsDefinition]) -> list[dg.AssetsDefinition]:
    """Return the assets, with the policies of those that a schedule renews."""
    policy_of = policies(CRON)

    def with_policy(spec: dg.AssetSpec) -> dg.AssetSpec:
        policy = policy_of.get(spec.key)
        return dg.apply_freshness_policy(spec, policy) if policy else spec

    return [asset.map_asset_specs(with_policy) for asset in assets]
