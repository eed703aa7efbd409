"""The watch over a training's progress: what counts as a stall, and what its message names."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from tests.children import python
from verl_jobs.trainer import progress
from verl_jobs.trainer.entry import DIED

ROOT = Path(__file__).parents[2]


def test_only_a_time_without_any_sign_counts(tmp_path: Path) -> None:
    watch = progress.ProgressWatch(tmp_path, 60.0)
    time.sleep(0.05)
    assert watch.look() == 0.0  # before the first phase
    progress.begin(tmp_path, "rollouts of step 1")
    assert watch.look() == 0.0
    time.sleep(0.05)
    assert watch.look() >= 0.05
    progress.touch(tmp_path)
    assert (watch.look(), watch.phase) == (0.0, "rollouts of step 1")


def test_after_two_updates_the_limit_follows_from_the_longest_wait(tmp_path: Path) -> None:
    watch = progress.ProgressWatch(tmp_path, 1e6)
    for step in (1, 2):
        assert watch.limit == 1e6
        progress.begin(tmp_path, f"update of step {step}")
        watch.look()
    assert watch.limit == progress.MIN_S
    watch.quiet = 100.0  # a step that took so long has ended
    progress.begin(tmp_path, "rollouts of step 3")
    watch.look()
    assert watch.limit == 100.0 * progress.TIMES
    watch.quiet = 1000.0  # the present wait does not move its own limit
    watch.look()
    assert watch.limit == 100.0 * progress.TIMES


def test_a_fault_names_the_phase_and_the_stopped_processes() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        text = progress.fault(90.0, "update of step 3", psutil.Process())
        process.kill()
    assert text == (
        f"no progress for 90 s in the phase 'update of step 3'; stopped processes: sleep (process "
        f"{process.pid})"
    )


STUCK = """
import sys
from pathlib import Path
from verl_jobs.trainer import entry, progress
progress.begin(Path(sys.argv[1]), "update of step 3")
entry.end_if_stuck(progress.ProgressWatch(Path(sys.argv[1]), 1.5))
"""


@pytest.mark.slow
def test_a_driver_without_progress_ends_with_the_phase(tmp_path: Path) -> None:
    ended = python("-c", STUCK, str(tmp_path))
    assert ended.returncode == DIED, ended.stderr
    assert "error: no progress for 2 s in the phase 'update of step 3'" in ended.stdout
