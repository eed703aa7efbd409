"""The lease by which a training sees its owner, and the notice that ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.journeys.demo_run import wait_until
from verl_jobs.trainer.trainer_lease import (
    LEASE,
    Lease,
    give_notice,
    lock_holder,
    notice,
    renewed_lease,
    withdraw_notice,
)

OWNER = (
    "import sys, time; from pathlib import Path\n"
    "from verl_jobs.trainer.trainer_lease import renewed_lease\n"
    "with renewed_lease(Path(sys.argv[1])): print(1, flush=True); time.sleep(60)"
)


def test_only_a_lease_that_is_not_renewed_expires(tmp_path: Path) -> None:
    (tmp_path / LEASE).write_text("1 0")
    lease = Lease(tmp_path, term_s=0.05)
    for count in range(1, 6):
        time.sleep(0.03)
        (tmp_path / LEASE).write_text(f"1 {count}")
        assert not lease.expired()
    time.sleep(0.06)
    assert lease.expired()
    (tmp_path / LEASE).write_text("2 0")  # another owner attached
    assert not lease.expired()


def test_the_clock_of_the_owner_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / LEASE).write_text("1 0")
    os.utime(tmp_path / LEASE, (0, 0))
    assert not Lease(tmp_path, term_s=5).expired()


def test_a_training_without_a_lease_file_never_expires(tmp_path: Path) -> None:
    lease = Lease(tmp_path, term_s=0.0)
    time.sleep(0.01)
    assert not lease.expired()


def test_the_lease_of_a_killed_owner_expires(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)], stdout=subprocess.PIPE
    ) as process:
        written = tmp_path / LEASE
        assert process.stdout
        assert process.stdout.readline()
        assert wait_until(lambda: written.exists() and written.stat().st_size > 0, 60)
        process.kill()
    assert (tmp_path / LEASE).read_text().startswith(f"{process.pid} ")
    lease = Lease(tmp_path, term_s=0.05)
    time.sleep(0.06)
    assert lease.expired()


@pytest.mark.slow
def test_a_busy_owner_renews_its_lease(tmp_path: Path) -> None:
    with renewed_lease(tmp_path, every_s=0.01):
        assert wait_until(
            lambda: (tmp_path / LEASE).exists() and (tmp_path / LEASE).stat().st_size, 60
        )
        lease, began, read = Lease(tmp_path, term_s=0.5), time.monotonic(), set[bytes]()
        while time.monotonic() - began < 1.0:
            sum(range(1000))
            read.add((tmp_path / LEASE).read_bytes())
        assert not lease.expired()
    assert all(
        content.startswith(f"{os.getpid()} ".encode()) for content in read
    )  # never half-written


def test_the_first_reason_of_a_notice_is_kept(tmp_path: Path) -> None:
    assert notice(tmp_path) == ""
    give_notice(tmp_path, "SIGTERM")
    give_notice(tmp_path, "cancelled")
    assert notice(tmp_path) == "SIGTERM"
    withdraw_notice(tmp_path)
    withdraw_notice(tmp_path)
    assert notice(tmp_path) == ""


def test_the_kernel_names_the_holder_of_a_trainings_lock(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path\n"
        "from verl_jobs.trainer.trainer_lease import training_lock\n"
        "with training_lock(Path(sys.argv[1])): print(1, flush=True); time.sleep(60)"
    )
    assert lock_holder(tmp_path) is None
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE
    ) as trainer:
        assert trainer.stdout
        assert trainer.stdout.readline()
        assert lock_holder(tmp_path) == trainer.pid
        trainer.kill()
        trainer.wait()
        assert lock_holder(tmp_path) is None


WAITS = (
    "import sys, time; from verl_jobs.trainer.trainer_lease import Deadline\n"
    "deadline = Deadline(3.0, still_s=0.5); print(1, flush=True); polls = 0\n"
    "while not deadline.passed(): time.sleep(0.1); polls += 1\n"
    "print(polls, flush=True)"
)


@pytest.mark.slow
def test_a_pause_does_not_count_as_waiting() -> None:
    command = [sys.executable, "-c", WAITS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline()
        process.send_signal(signal.SIGSTOP)
        time.sleep(5)
        process.send_signal(signal.SIGCONT)
        assert int(process.stdout.readline()) > 5
