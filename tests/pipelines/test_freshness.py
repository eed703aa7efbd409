"""Decisions and scores become stale when the schedule that renews them misses its runs."""

from __future__ import annotations

from datetime import timedelta

import dagster as dg
import pytest

from pipelines.definitions import defs
from pipelines.freshness import policies
from pipelines.intervals import longest_interval
from resources.config.profile import Automation


@pytest.mark.parametrize(
    ("cron", "days"), [("0 3 * * *", 1), ("0 3 * * 1-5", 3), ("0 7 * * 0", 7), ("0 3 1 * *", 31)]
)
def test_the_longest_interval_spans_skipped_days(cron: str, days: int) -> None:
    assert longest_interval(cron) == timedelta(days=days)


def test_what_a_schedule_renews_has_a_freshness_policy() -> None:
    shown = {spec.key for spec in defs.resolve_all_asset_specs() if spec.freshness_policy}
    daily = dg.FreshnessPolicy.time_window(
        fail_window=timedelta(days=3), warn_window=timedelta(days=1.5)
    )
    assert policies(Automation()) == dict.fromkeys(shown, daily)
    assert {key.to_user_string() for key in shown} == {"contestant_scores"}
    assert policies(Automation(retrain=True)) == dict.fromkeys(
        [*shown, dg.AssetKey("promoted_model")], daily
    )
