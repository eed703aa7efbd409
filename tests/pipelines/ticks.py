"""Evaluate a schedule as the daemon does."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import dagster as dg

SUNDAY = datetime(2026, 11, 22, 7, tzinfo=UTC)


def tick(
    schedule: dg.ScheduleDefinition, instance: dg.DagsterInstance, resources: Mapping[str, Any]
) -> dg.RunRequest | dg.SkipReason:
    """Return what the schedule requests on SUNDAY.

    The context is closed at once: it has opened the instance again, and an instance that is closed
    after another one is where Dagster looks for the state of the next definitions.
    """
    with dg.build_schedule_context(
        instance=instance, scheduled_execution_time=SUNDAY, resources=dict(resources)
    ) as context:
        result = schedule(context)
    assert isinstance(result, dg.RunRequest | dg.SkipReason)
    return result
