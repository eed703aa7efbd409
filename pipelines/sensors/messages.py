"""Sensor that sends messages to people while the daemon runs (`notify` of the profile)."""

from __future__ import annotations

from datetime import UTC, datetime

import dagster as dg

from evaluation.promotion.comparison import count
from pipelines.health import check
from pipelines.notices import send_due
from pipelines.sensors.sensor import sensor
from resources.run_context import RunContext

EVERY_S = 60


@sensor(every_s=EVERY_S)
def messages(context: dg.SensorEvaluationContext, run_context: RunContext) -> dg.SkipReason:
    """Checks the home, and sends each receiver of `notify` what it was not sent yet."""
    settings, now = run_context.as_settings, datetime.now(UTC)
    if not settings.profile.notify.receivers:
        check(settings, context.instance, now)
        return dg.SkipReason("`notify.receivers` of the profile names nobody")
    sent, problems = send_due(settings, context.instance, now)
    return dg.SkipReason("; ".join([f"sent {count(sent, 'message')}", *problems]))
