"""One process trains in a home at a time, and a dead process holds no lease."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from resources import lease

HOLDER = """
import sys, time
from pathlib import Path
from resources import lease
lease.take(Path(sys.argv[1]), "chain-0007")
print("has it", flush=True)
time.sleep(60)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a home" / "training.lease"


def other(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    assert process.stdout.readline() == "has it\n"
    return process


def test_a_held_lease_names_its_holder_and_time(path: Path) -> None:
    process = other(path)
    try:
        with pytest.raises(lease.LeaseHeld, match=rf"chain-0007\b.*\b{process.pid}\b.*20.*UTC"):
            lease.take(path, "chain-0008")
        holder = lease.holder(path)
        assert holder is not None
        assert (holder.pid, holder.run_id) == (process.pid, "chain-0007")
    finally:
        process.kill()
        process.wait()


def test_a_killed_holder_releases_the_lease(path: Path) -> None:
    process = other(path)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert lease.holder(path) is None
    lease.take(path, "chain-0008")
    lease.release(path)


def test_the_holder_may_take_its_lease_twice(path: Path) -> None:
    lease.take(path, "chain-0001")
    lease.take(path, "chain-0001")
    holder = lease.holder(path)
    assert holder is not None
    assert holder.pid == os.getpid()
    lease.release(path)
    assert lease.holder(path) is None


def test_reading_the_holder_does_not_block_a_training(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.parent.mkdir()
    with path.open("a") as looks:
        fcntl.flock(looks, fcntl.LOCK_SH)
        monkeypatch.setattr(
            "resources.lease.time.sleep", lambda _: fcntl.flock(looks, fcntl.LOCK_UN)
        )
        lease.take(path, "chain-0001")
    lease.release(path)


def test_reading_the_holder_creates_no_file(path: Path) -> None:
    assert lease.holder(path) is None
    assert not path.exists()
