"""A run whose process is dead is marked as failed; one whose process lives is unchanged."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import psutil
import pytest
import yaml
from dagster._core.launcher.base import WorkerStatus

from pipelines.instance import instance_settings
from resources.config.infrastructure import Orchestration
from resources.run_launcher import LocalRunLauncher, fail_dead_runs, lives, worker_health

RUN = """
import sys, time
import dagster as dg

@dg.op
def waits():
    print("runs", flush=True)
    time.sleep(60)

@dg.job(tags={"test": "yes"}, executor_def=dg.in_process_executor)
def long():
    waits()

with dg.DagsterInstance.get() as instance:
    long.execute_in_process(instance=instance)
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "dagster.yaml").write_text(
        yaml.safe_dump(instance_settings(Orchestration())), encoding="utf-8"
    )
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    yield tmp_path


def test_dagster_accepts_the_settings_and_uses_the_launcher(home: Path) -> None:
    with dg.DagsterInstance.get() as instance:
        assert isinstance(instance.run_launcher, LocalRunLauncher)
        assert instance.run_launcher.supports_check_run_worker_health
        assert instance.run_monitoring_enabled
        assert not instance.telemetry_enabled


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stopped", "status"),
    [(False, dg.DagsterRunStatus.FAILURE), (True, dg.DagsterRunStatus.CANCELED)],
)
def test_a_killed_run_is_marked_once(
    home: Path, stopped: bool, status: dg.DagsterRunStatus
) -> None:
    process = subprocess.Popen([sys.executable, "-c", RUN], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdout.readline() == "runs\n"
    with dg.DagsterInstance.get() as instance:
        [run] = instance.get_runs()
        assert worker_health(instance, run).status is WorkerStatus.RUNNING
        assert fail_dead_runs(instance, {"test": "yes"}) == 0
        if stopped:
            instance.report_run_canceling(run)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        health = worker_health(instance, run)
        assert health.status is WorkerStatus.FAILED
        assert str(process.pid) in str(health.msg)
        assert fail_dead_runs(instance, {"test": "yes"}) == 1
        assert fail_dead_runs(instance, {"test": "yes"}) == 0
        [run] = instance.get_runs()
        assert run.status is status


def test_a_reused_process_id_is_another_process() -> None:
    began = psutil.Process().create_time()
    assert lives(os.getpid(), time.time())
    assert not lives(os.getpid(), began - 60)
