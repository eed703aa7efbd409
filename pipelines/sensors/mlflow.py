"""Sensor that syncs MLflow with the ledger, after a failed sync or a change in MLflow."""

from __future__ import annotations

import time

import dagster as dg

from pipelines.jobs import tell_mlflow
from pipelines.sensors.sensor import sensor
from resources.run_context import RunContext

EVERY_S = 60
RETRY_S = 600  # seconds between two attempts while MLflow cannot be reached
STARTED = str(time.time_ns())  # each start of the code location syncs MLflow once


@sensor(every_s=EVERY_S, job=tell_mlflow)
def mlflow_follows(context: dg.SensorEvaluationContext, run_context: RunContext) -> dg.SensorResult:
    """Starts `tell_mlflow` if MLflow is behind, and once at each start. Reads the sync state from a
    small file, never from MLflow.
    """
    history = run_context.ledger.history()
    if not history:
        return dg.SensorResult(skip_reason="the ledger is empty")
    pending, cursor = run_context.mlflow.behind(history), context.cursor or ""
    if not pending and cursor == STARTED:
        return dg.SensorResult(skip_reason=f"MLflow has all {len(history)} entries of the ledger")
    key = f"{history[-1].entry}-{STARTED}-{int(time.time() // RETRY_S) if pending else 'start'}"
    return dg.SensorResult(run_requests=[dg.RunRequest(run_key=key)], cursor=STARTED)
