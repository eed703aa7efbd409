"""Sensor that starts a retraining when production shows that the deployed version is degraded.

It reads the releases and the observations of the gateway. A retraining decides nothing: its
checkpoint has to pass the gate and a release like any other.
"""

from __future__ import annotations

import time

import dagster as dg

from evaluation.statistics.online.fall import fall_of
from pipelines.jobs import full_pipeline
from pipelines.sensors.retraining import (
    attempts,
    refusal,
    retraining,
    started,
    trained_since,
    wait_reason,
)
from pipelines.sensors.sensor import sensor
from resources.registry.releases import Release, Releases, deployed
from resources.run_context import RunContext

CAUSE = "degraded"


@sensor(job=full_pipeline, trains=True)
def degraded_champion(
    context: dg.SensorEvaluationContext, run_context: RunContext
) -> dg.SensorResult:
    """Starts a retraining after a release was rolled back, or when the deployed version passes
    fewer of the live requests' tests than at first; once for each release and version, and after
    the cooldown again if it failed.
    """
    releases = Releases(run_context.ledger.place).all()
    degradation = _rolled_back(run_context, releases) or _fallen(run_context, releases)
    if degradation is None:
        return dg.SensorResult(skip_reason="production shows no degradation")
    key, why = degradation
    earlier = attempts(context.instance, key)
    if earlier and (reason := refusal(run_context, earlier, once=True)):
        return dg.SensorResult(skip_reason=f"{why} {reason}")
    starts = started(context.instance, "regression", CAUSE)
    automation = run_context.profile.automation
    if reason := wait_reason(run_context, starts, time.time(), automation):
        return dg.SensorResult(skip_reason=f"{why} A retraining waits: {reason}.")
    return retraining(run_context, why, key, earlier, CAUSE)


def _rolled_back(run_context: RunContext, releases: list[Release]) -> tuple[str, str] | None:
    """Return key and reason if the last release was rolled back, and no run decided since."""
    if not releases or releases[-1].state != "rolled_back":
        return None
    last = releases[-1]
    why = f"{last.id} was rolled back: {' '.join(last.last.detail['reasons'])}"
    return None if trained_since(run_context, last.last.time) else (f"{CAUSE}-{last.id}", why)


def _fallen(run_context: RunContext, releases: list[Release]) -> tuple[str, str] | None:
    """Return run key and reason if the deployed version's verified answers pass less often."""
    from serving.gateway.observations import Observations

    champion, settings = run_context.ledger.champion(), run_context.profile.production
    version = deployed(releases) or (champion.version if champion else 0)
    home = run_context.home
    verdicts = Observations(home.observations, home.database).verdicts(version)
    alpha = run_context.profile.automation.regression_alpha
    fall = fall_of(verdicts, settings.baseline, settings.fall, alpha)
    if fall is None or not fall.shown:
        return None
    why = (
        f"version {version} passes {fall.since:.0%} of the requests with tests, after "
        f"{fall.level:.0%} of the first {settings.baseline}."
    )
    return f"{CAUSE}-version-{version}", why
