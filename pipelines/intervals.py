"""Intervals of cron expressions."""

from __future__ import annotations

from datetime import datetime, timedelta

import dagster as dg

START, DAYS = datetime(2024, 1, 1), 70  # long enough for one interval of a monthly schedule


def longest_interval(cron: str) -> timedelta:
    """Return the longest time between two ticks of a cron expression, within ten weeks."""
    ticks = dg.TimeWindowPartitionsDefinition(
        cron_schedule=cron, start=START, end=START + timedelta(days=DAYS), fmt="%Y-%m-%d %H:%M"
    )
    windows = map(ticks.time_window_for_partition_key, ticks.get_partition_keys())
    return max(window.end - window.start for window in windows)
