"""Dagster's run launcher for one machine, which notices that a run's process is gone.

After a kill or a crash of the host, DefaultRunLauncher leaves a run STARTED forever. This launcher
tells run monitoring whether the process lives, by the pid in the run's own events. The daemon then
marks the run failed and, where retries are left, starts it again.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
from dagster import (
    DagsterEventType,
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
    DefaultRunLauncher,
    RunsFilter,
)
from dagster._core.launcher.base import CheckRunHealthResult, WorkerStatus  # private as of 1.13.27

BEFORE_BEGIN = [
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.QUEUED,
    DagsterRunStatus.STARTING,
]
ALIVE = [DagsterRunStatus.STARTING, DagsterRunStatus.STARTED, DagsterRunStatus.CANCELING]


class LocalRunLauncher(DefaultRunLauncher):
    """Named as `run_launcher` in dagster.yaml; launches runs as its parent class does."""

    @property
    def supports_check_run_worker_health(self) -> bool:
        return True

    def check_run_worker_health(self, run: DagsterRun) -> CheckRunHealthResult:
        return worker_health(self._instance, run)


def worker_health(instance: DagsterInstance, run: DagsterRun) -> CheckRunHealthResult:
    """Return the health of a run's process.

    UNKNOWN counts as failed for Dagster, so a run whose process has not reported its pid yet is
    reported as running.
    """
    named = _process(instance, run)
    if not named or lives(*named):
        return CheckRunHealthResult(WorkerStatus.RUNNING)
    return CheckRunHealthResult(WorkerStatus.FAILED, f"process {named[0]} is gone")


def _process(instance: DagsterInstance, run: DagsterRun) -> tuple[int, float] | None:
    """Return the pid that a run's process reported last, and when; None before its first report."""
    reports = [
        (int(str(event.dagster_event.engine_event_data.metadata["pid"].value)), event.timestamp)
        for event in instance.all_logs(run.run_id, of_type=DagsterEventType.ENGINE_EVENT)
        if event.dagster_event and "pid" in event.dagster_event.engine_event_data.metadata
    ]
    return reports[-1] if reports else None


def lives(pid: int, reported_at: float) -> bool:
    """Return whether the process that was `pid` at time `reported_at` still runs.

    A process that began later only reuses the number.
    """
    try:
        process = psutil.Process(pid)
        return bool(
            process.status() != psutil.STATUS_ZOMBIE and process.create_time() <= reported_at + 1
        )
    except psutil.NoSuchProcess:
        return False


def fail_dead_runs(instance: DagsterInstance, tags: dict[str, str]) -> int:
    """Mark runs with these tags failed where their process is gone, or Canceled if they were being
    stopped: Dagster retries a run that failed. Return how many. For a home without a daemon.
    """
    dead = 0
    for run in instance.get_runs(RunsFilter(statuses=ALIVE, tags=tags)):
        if (health := worker_health(instance, run)).status is WorkerStatus.RUNNING:
            continue
        if run.status is DagsterRunStatus.CANCELING:
            instance.report_run_canceled(run, f"The run's {health.msg}.")
        else:
            instance.report_run_failed(
                run, f"The run's {health.msg}; another run resumes its pipeline run."
            )
        dead += 1
    return dead


def cancel_runs(folder: Path, tags: dict[str, str]) -> list[DagsterRun]:
    """End the runs with these tags for good, and return them: Dagster neither retries them, nor do
    sensors ask for them again. A run that has not begun is Canceled now, another one when its
    process ends.

    folder: of Dagster's history, if DAGSTER_HOME names no other.
    """
    folder = Path(os.environ.get("DAGSTER_HOME") or folder)
    if not (folder / "dagster.yaml").is_file():
        return []
    alive = RunsFilter(statuses=[*BEFORE_BEGIN, *ALIVE], tags=tags)
    with DagsterInstance.from_config(str(folder)) as instance:
        runs = list(instance.get_runs(alive))
        for run in runs:
            instance.report_run_canceling(run, "`ratchet jobs stop`")
            if run.status in BEFORE_BEGIN:
                instance.report_run_canceled(run, "`ratchet jobs stop`")
            if (named := _process(instance, run)) and lives(*named):
                os.kill(named[0], signal.SIGTERM)
    return runs
