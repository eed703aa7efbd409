"""Decisions and scores become stale when the schedule that renews them misses its runs."""

from __future__ import annotations

from datetime import timedelta

import dagster as dg
import pytest

from pipelines.definitions import defs
from pipelines.freshness import longest_interval


@pytest.mark.parametrize(
    ("cron", "days"), [("0 3 * * *", 1), ("0 3 * * 1-5", 3), ("0 7 * * 0", 7), ("0 3 1 * *", 31)]
)
def test_the_longest_interval_spans_skipped_days(cron: str, days: int) -> None:
    assert longest_interval(cron) == timedelta(days=days)


def test_what_a_schedule_renews_has_a_freshness_policy() -> None:
    policies = {
        spec.key.to_user_string(): spec.freshness_policy
        for spec in defs.resolve_all_asset_specs()
        if spec.freshness_policy
    }
    nightly = dg.FreshnessPolicy.time_window(
        fail_window=timedelta(days=3), warn_window=timedelta(days=1.5)
    )
    assert policies["promoted_model"] == nightly
    assert set(policies) == {"promoted_model", "contestant_scores"}
