"""Thirty nights in a row on a small disk, which never gets full.

The disk stays mounted until the last night, so a stopped test continues after the last one.
RATCHET_NIGHTS: fewer nights.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from artifacts.manifest import code_version
from resources.home import Home
from resources.run_record import readable
from tests.journeys.demo_run import ratchet
from tests.small_disk import mount, unmount

pytestmark = [pytest.mark.soak, pytest.mark.timeout(24 * 3600)]
DISK_MIB, NIGHTS = 1600, int(os.environ.get("RATCHET_NIGHTS", "30"))
PLACE = Path(".ratchet/soak").absolute() / f"month-{code_version()}"
PROFILE = """extends: small
family: {demonstrations: 60, train: 16, validation: 4}
augmentation: {kinds: []}
verification: {mutants: 0}
warm_up: {steps: 4}
ranking: {problems: 4, answers: 2}
training: {steps: 2, problems_per_step: 4, group_size: 4, save_every: 1}
evaluation: {heldout: 8, benchmarks: []}
needs: {disk_gib: 0.3, memory_gib: 1}
"""


@pytest.fixture
def home() -> Home:
    """Return a home on the disk, which is mounted unless it is from an earlier try."""
    mount(PLACE, DISK_MIB)
    (PLACE / "tiny.yaml").write_text(PROFILE, encoding="utf-8")
    return Home(PLACE / "home")


def test_thirty_nights_never_fill_a_small_disk(home: Home) -> None:
    environment = os.environ | {"RATCHET_HOME": str(home.path)}
    command = ratchet("train", "--profile", str(PLACE / "tiny.yaml"))
    used: list[float] = []
    while (done := nights(home)) < NIGHTS:
        subprocess.run(command, env=environment, check=True, stdin=subprocess.DEVNULL)
        assert nights(home) == done + 1
        used.append(shutil.disk_usage(PLACE).used / 2**20)
        print(f"night {done + 1}: {used[-1]:.0f} MiB used", flush=True)
    unmount(PLACE)


def nights(home: Home) -> int:
    """Return the decided nights."""
    return sum(bool(record.decision) for record in readable(home.runs))
