"""The daemon is killed while a run that it started is training.

The training continues, and the run reaches its decision under the next daemon.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from resources.ray.head import free_ports
from tests.journeys.demo_run import (
    command_line,
    now_at,
    of_home,
    orphans,
    ratchet,
    results_of,
    training_of,
    wait_until,
)
from tests.journeys.test_ui import answers
from verl_jobs.job import metrics, next_attempt
from verl_jobs.trainer.checkpoints import complete_saves

DAGSTER = str(Path(sys.executable).with_name("dagster"))


@pytest.mark.soak
@pytest.mark.timeout(2400)
def test_a_killed_daemon_does_not_stop_a_pipeline_run(tmp_path: Path) -> None:
    home = tmp_path / "home"
    environment = os.environ | {
        "RATCHET_HOME": str(home),
        "RATCHET_PROFILE": "small",
        "DAGSTER_HOME": str(home / "dagster"),
    }
    # `dagster job launch` leaves out a job's own tags.
    tags = '{"kind": "train", "dagster/partition": "chain-0001"}'
    launch = [
        DAGSTER,
        "job",
        "launch",
        "-w",
        str(home / "dagster" / "workspace.yaml"),
        "-j",
        "full_pipeline",
        "--tags",
        tags,
    ]
    with a_ui(tmp_path, environment) as first:
        launched = subprocess.run(
            launch, env=environment, capture_output=True, text=True, check=False
        )
        assert launched.returncode == 0, launched.stderr[-2000:]
        assert wait_until(
            lambda: (folder := training_of(home)) and complete_saves(folder / "saves"), 900
        ), now_at(home)
        for process in daemons(home):
            process.kill()
        # The web interface ends with the daemon.
        assert wait_until(lambda: first.poll() is not None, 90)
    with a_ui(tmp_path, environment):
        assert wait_until(lambda: results_of(home).ledger, 900), now_at(home)
        folder = training_of(home)
        # One attempt: the Dagster run continued, or the next run attached to the training.
        assert folder
        assert metrics(folder)[-1]["step"] == 8
        assert next_attempt(folder) == 2
    assert orphans(home) == []


@contextmanager
def a_ui(folder: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    [port] = free_ports(1)
    with (folder / "ui.log").open("ab") as log:
        process = subprocess.Popen(
            ratchet("ui", "--port", str(port)),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
        )
    try:
        assert wait_until(lambda: answers(f"http://127.0.0.1:{port}/server_info"), 180), (
            folder / "ui.log"
        ).read_text()[-2000:]
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def daemons(home: Path) -> list[psutil.Process]:
    processes = [
        process for process in of_home(home) if "dagster._daemon" in " ".join(command_line(process))
    ]
    assert processes, [command_line(process)[:6] for process in of_home(home)]
    return processes
