"""A pipeline run stops on a full disk with one line that says what to do.

Nothing is lost, and the same command resumes.
"""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journeys.demo_run import now_at, orphans, ratchet, wait_until
from tests.small_disk import full, small_disk

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
DISK_MIB = 1600


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", DISK_MIB) as disk:
        yield disk


def test_a_full_disk_is_reported_and_the_run_resumes(disk: Path, tmp_path: Path) -> None:
    home = disk / "home"
    profile = tmp_path / "small.yaml"
    profile.write_text("extends: small\nneeds: {disk_gib: 1}\n")
    environment = os.environ | {"RATCHET_HOME": str(home), "RATCHET_PROFILE": str(profile)}
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            ratchet("demo"), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
        )
    assert wait_until(
        lambda: now_at(home) == "verified_problems" or process.poll() is not None, 300
    )
    assert process.poll() is None
    with full(disk):
        assert process.wait(300) != 0
    log_text = (tmp_path / "log").read_text()
    assert re.search(rf"error: .*disk.*{home}", log_text), log_text
    assert "Traceback" not in log_text, log_text
    assert orphans(home) == []

    def verified() -> list[Path]:
        return list(home.glob("datasets/verified_problems/*/manifest.json"))

    assert not verified()
    with (tmp_path / "again").open("w") as log:
        process = subprocess.Popen(
            ratchet("demo"), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
        )
    wait_until(lambda: verified() or process.poll() is not None, 300)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert verified(), (tmp_path / "again").read_text()
