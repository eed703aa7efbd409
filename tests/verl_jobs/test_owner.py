"""Who wants a training to go on: the lease seen by the training, the notice that it ends by."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.journeys.demo_run import wait_until
from verl_jobs.trainer.trainer_lease import (
    LEASE,
    Lease,
    give_notice,
    notice,
    owned,
    withdraw_notice,
)

OWNER = (
    "import sys, time; from pathlib import Path; from verl_jobs.trainer.trainer_lease import owned\n"
    "with owned(Path(sys.argv[1])): print(1, flush=True); time.sleep(60)"
)


def test_a_lease_that_is_renewed_does_not_expire_and_one_that_is_not_does(tmp_path: Path) -> None:
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


def test_a_clock_that_is_wrong_on_the_owner_s_machine_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / LEASE).write_text("1 0")
    os.utime(tmp_path / LEASE, (0, 0))
    assert not Lease(tmp_path, term_s=5).expired()


def test_a_training_started_by_hand_has_no_lease_to_lose(tmp_path: Path) -> None:
    lease = Lease(tmp_path, term_s=0.0)
    time.sleep(0.01)
    assert not lease.expired()


def test_the_lease_of_a_killed_owner_is_renewed_no_more(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)], stdout=subprocess.PIPE
    ) as process:
        written = tmp_path / LEASE
        assert (
            process.stdout
            and process.stdout.readline()
            and wait_until(lambda: written.exists() and written.stat().st_size > 0, 60)
        )
        process.kill()
    assert (tmp_path / LEASE).read_text().startswith(f"{process.pid} ")
    lease = Lease(tmp_path, term_s=0.05)
    time.sleep(0.06)
    assert lease.expired()


def test_an_owner_renews_its_lease_while_its_own_thread_is_busy(tmp_path: Path) -> None:
    with owned(tmp_path, every_s=0.01):
        assert wait_until(
            lambda: (tmp_path / LEASE).exists() and (tmp_path / LEASE).stat().st_size, 60
        )
        lease, began, read = Lease(tmp_path, term_s=0.5), time.monotonic(), set[bytes]()
        while time.monotonic() - began < 1.0:
            sum(range(1000))
            read.add((tmp_path / LEASE).read_bytes())
        assert not lease.expired()
    assert all(said.startswith(f"{os.getpid()} ".encode()) for said in read)  # never half-written


def test_the_first_reason_of_a_notice_stays_until_it_is_withdrawn(tmp_path: Path) -> None:
    assert notice(tmp_path) == ""
    give_notice(tmp_path, "SIGTERM")
    give_notice(tmp_path, "cancelled")
    assert notice(tmp_path) == "SIGTERM"
    withdraw_notice(tmp_path)
    withdraw_notice(tmp_path)
    assert notice(tmp_path) == ""
