"""The cores that a process may use: of its machine, or of its pod."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sandbox.cores import usable_cores

pytestmark = pytest.mark.usefixtures("of_64")
LIMITS = {  # name -> /proc/self/cgroup, files with limits, cores
    "no limit": ("0::/\n", {"cpu.max": "max 100000"}, 64),
    "a pod": ("0::/\n", {"cpu.max": "400000 100000"}, 4),
    "less than a core": ("0::/\n", {"cpu.max": "50000 100000"}, 1),
    "more than the machine": ("0::/\n", {"cpu.max": "9900000 100000"}, 64),
    "a parent's limit": ("0::/pods/a\n", {"pods/cpu.max": "250000 100000"}, 2),
    "the first version": (
        "4:memory:/x\n3:cpu,cpuacct:/x\n",
        {"cpu,cpuacct/x/cpu.cfs_quota_us": "300000", "cpu,cpuacct/x/cpu.cfs_period_us": "100000"},
        3,
    ),
    "the first version without a limit": (
        "3:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 64,
    ),
}  # fmt: skip


@pytest.fixture
def of_64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_of_the_cgroup_counts(name: str, tmp_path: Path) -> None:
    own, files, cores = LIMITS[name]
    (tmp_path / "own").write_text(own)
    for file, text in files.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(f"{text}\n")
    assert usable_cores(tmp_path / "own", tmp_path) == cores
