"""Each worker has two channels, which share a core lock.

There are never more programs running than workers, and nobody can keep the lock.
"""

from __future__ import annotations

import ast
import contextlib
import os
import platform
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.backends.local import LocalBackend, LocalChannel
from sandbox.backends.ray import RayWorker
from sandbox.protocol import CallTest, Job, Report, Verdict
from sandbox.sandbox import Sandbox, SandboxConfig
from tests.sandbox.jobs import QUICK, call, stdio
from tests.sandbox.left import descendants

CORES = len(os.sched_getaffinity(0))
pytestmark = pytest.mark.skipif(
    CORES % 2 == 1, reason="an odd number of cores: no worker has two channels here"
)
SPAN = "import time\nbegun = time.monotonic()\ntime.sleep(0.03)\nspan = [begun, time.monotonic()]\n"


def numbered(job: Job, count: int) -> list[Job]:
    return [replace(job, job_id=str(i)) for i in range(count)]


def most_at_once(spans: list[list[float]]) -> int:
    return max(sum(begun <= moment < ended for begun, ended in spans) for moment, _ in spans)


@pytest.mark.slow
@pytest.mark.parametrize("style", ["call", "stdio"])
def test_at_most_as_many_programs_run_as_workers(style: str) -> None:
    if style == "call":  # the report quotes a wrong result verbatim
        jobs = numbered(call(SPAN + "def f(): return span", CallTest((), {}, None)), 20)
    else:
        jobs = numbered(stdio(SPAN + "print(span)", "", "none"), 20)
    with Sandbox(SandboxConfig(workers=CORES // 2)) as sandbox:
        details = [report.tests[0].detail for report in sandbox.run(jobs)]
    spans = [
        ast.literal_eval(detail[detail.index("[") : detail.index("]") + 1]) for detail in details
    ]
    assert len(spans) == 20
    assert most_at_once(spans) <= CORES // 2


class Seen(LocalBackend):
    """A backend that keeps the workers that it opened."""

    def __init__(self) -> None:
        super().__init__("auto", ())
        self.channels_opened: list[LocalChannel] = []

    def open(self, number: int, of: int) -> LocalChannel:
        self.channels_opened.append(super().open(number, of))
        return self.channels_opened[-1]


@pytest.mark.slow
def test_a_killed_worker_releases_the_core_lock() -> None:
    backend, reports = Seen(), list[Report]()
    slow = numbered(stdio("import time\ntime.sleep(0.3)", "", ""), 6 * CORES)
    with Sandbox(SandboxConfig(workers=CORES // 2), backend=backend) as sandbox:
        running = threading.Thread(target=lambda: reports.extend(sandbox.run(slow)))
        running.start()
        # one of the two workers of a pair holds the core lock, no matter which
        for victim in backend.channels_opened[:2]:
            time.sleep(0.4)
            os.kill(victim.pid, signal.SIGKILL)
        running.join()
    assert sorted(int(report.job_id) for report in reports) == list(range(6 * CORES))
    assert {report.verdict for report in reports} == {Verdict.AC}


@pytest.mark.slow
def test_waiting_for_the_core_lock_is_not_charged() -> None:
    job = stdio("import time\ntime.sleep(2)", "", "", limits=replace(QUICK, wall_s=3.9))
    with Sandbox(SandboxConfig(workers=CORES // 2)) as sandbox:
        reports = list(sandbox.run(numbered(job, 2 * CORES)))
    assert all(report.verdict is Verdict.AC and report.wall_s < 3.9 for report in reports)


def strike_one_that_waits() -> bool:
    """Kill a process below us that reads from descriptor 5, the gate; return whether there was one.

    It is killed as soon as it is seen, because its program runs soon after.
    """
    for pid in descendants(os.getpid()):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/syscall").read_text().startswith("0 0x5 "):
                os.kill(pid, signal.SIGKILL)
                return True
    return False


@pytest.mark.slow
@pytest.mark.skipif(
    platform.machine() != "x86_64" or os.geteuid() != 0,
    reason="needs root and the system call numbers of x86-64",
)
def test_a_process_killed_before_its_turn_is_retried() -> None:
    reports, struck = list[Report](), False
    with Sandbox(SandboxConfig(workers=CORES // 2)) as sandbox:
        jobs = numbered(stdio("import time\ntime.sleep(0.5)", "", ""), 5 * CORES)
        running = threading.Thread(target=lambda: reports.extend(sandbox.run(jobs)))
        running.start()
        while running.is_alive() and not (struck := strike_one_that_waits()):
            time.sleep(0.01)
        running.join()
    assert struck
    assert {report.verdict for report in reports} == {Verdict.AC}


def test_a_worker_in_a_ray_actor_is_not_pinned() -> None:
    """Otherwise all actors of a node would keep to the same core."""
    place = RayWorker("auto", ())
    place.open()
    assert os.sched_getaffinity(place.pids()[1]) == os.sched_getaffinity(0)
    place.close()
