"""Sync MLflow automatically: what a promotion or a rollback could not send, and what was changed
there meanwhile.
"""

from __future__ import annotations

import time

import dagster as dg

from pipelines.jobs import tell_mlflow
from resources.run_context import RunContext

EVERY_S = 60
RETRY_S = 600  # between two tries to tell an MLflow that cannot be told
STARTED = str(time.time_ns())  # of this code location: MLflow is looked at once each time it starts


@dg.sensor(
    job=tell_mlflow, minimum_interval_seconds=EVERY_S, default_status=dg.DefaultSensorStatus.RUNNING
)
def mlflow_follows(context: dg.SensorEvaluationContext, run_context: RunContext) -> dg.SensorResult:
    """Reads a small file on how far MLflow is in sync, never MLflow itself; starts `tell_mlflow` if
    it is behind, and once at each start.
    """
    history = run_context.ledger.history()
    if not history:
        return dg.SensorResult(skip_reason="nothing has come to the gate yet")
    behind, started = run_context.registry.behind(history), context.cursor or ""
    if not behind and started == STARTED:
        return dg.SensorResult(skip_reason=f"MLflow was told of all {len(history)} entries")
    key = f"{history[-1].entry}-{STARTED}-{int(time.time() // RETRY_S) if behind else 'start'}"
    return dg.SensorResult(run_requests=[dg.RunRequest(run_key=key)], cursor=STARTED)
