"""Ctrl-C ends a command with exit code 130 and without a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from resources import lease
from resources.home import Home
from resources.run_record import open_run

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def receives_interrupts() -> Iterator[None]:
    """A shell's background job ignores SIGINT, and its children inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def importing(process: psutil.Process) -> bool:
    """Whether the first of the third-party libraries is loaded."""
    return "_pydantic_core" in Path(f"/proc/{process.pid}/maps").read_text()


def waiting(process: psutil.Process) -> bool:
    """Whether the process has begun, and sleeps; a starved one on a busy machine does not."""
    for _ in range(8):
        time.sleep(0.05)
        if process.status() != psutil.STATUS_SLEEPING:
            return False
    return bool(sum(process.cpu_times()[:2]) > 0.08)


def interrupted(home: Path, *arguments: str, when: Callable[[psutil.Process], bool]) -> str:
    """Send SIGINT to the process group of a command, and return its output."""
    command = subprocess.Popen(
        [sys.executable, "-m", "cli.main", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        env=os.environ | {"RATCHET_HOME": str(home)},
        start_new_session=True,
    )
    process = psutil.Process(command.pid)
    while command.poll() is None and not when(process):
        time.sleep(0.002)
    os.killpg(command.pid, signal.SIGINT)
    output, _ = command.communicate(timeout=60)
    # the interpreter may end by the signal itself at its start and end; a shell sees 130 as well
    assert command.returncode in (130, -signal.SIGINT), output
    return output


def test_at_the_start(tmp_path: Path) -> None:
    assert interrupted(tmp_path, "status", when=importing) == ""


@pytest.mark.slow
def test_in_a_wait_for_input(tmp_path: Path) -> None:
    assert "Traceback" not in interrupted(tmp_path, "judge", when=waiting)


@pytest.mark.slow
def test_in_the_loop_that_follows_a_run(tmp_path: Path) -> None:
    options = {"kind": "pipeline", "base_seed": 1, "profile": "small", "why": "test"}
    open_run(Home(tmp_path).runs, "chain-0001", champion=None, **options)  # type: ignore[arg-type]
    lease.take(Home(tmp_path).lease, "chain-0001")
    try:
        output = interrupted(tmp_path, "jobs", "watch", when=waiting)
    finally:
        lease.release(Home(tmp_path).lease)
    assert "chain-0001" in output
    assert "Traceback" not in output
