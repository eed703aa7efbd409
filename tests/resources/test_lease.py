"""One process trains in a home at a time, and a dead one holds nothing."""

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
    assert process.stdout and process.stdout.readline() == "has it\n"
    return process


def test_a_second_process_is_told_who_trains_and_since_when(path: Path) -> None:
    process = other(path)
    try:
        with pytest.raises(
            lease.LeaseHeld, match=rf"chain-0007 \(process {process.pid}\) since 20.*UTC"
        ):
            lease.take(path, "chain-0008")
        found = lease.holder(path)
        assert found is not None and (found.pid, found.chain) == (process.pid, "chain-0007")
    finally:
        process.kill()
        process.wait()


def test_a_killed_holder_gives_the_lease_free(path: Path) -> None:
    process = other(path)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert lease.holder(path) is None
    lease.take(path, "chain-0008")
    lease.give_back(path)


def test_the_holder_may_take_it_again_and_give_it_back(path: Path) -> None:
    lease.take(path, "chain-0001")
    lease.take(path, "chain-0001")
    found = lease.holder(path)
    assert found is not None and found.pid == os.getpid()
    lease.give_back(path)
    assert lease.holder(path) is None


def test_who_looks_for_a_holder_at_the_same_moment_turns_no_training_away(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.parent.mkdir()
    with path.open("a") as looks:
        fcntl.flock(looks, fcntl.LOCK_SH)
        monkeypatch.setattr(
            "resources.lease.time.sleep", lambda _: fcntl.flock(looks, fcntl.LOCK_UN)
        )
        lease.take(path, "chain-0001")
    lease.give_back(path)


def test_looking_for_a_holder_makes_no_file(path: Path) -> None:
    assert lease.holder(path) is None and not path.exists()
