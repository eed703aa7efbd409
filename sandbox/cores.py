"""How many cores this process may keep busy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")


def usable_cores(own: Path = Path("/proc/self/cgroup"), groups: Path = GROUPS) -> int:
    """Return the cores that this process may run on, or fewer by the CPU limit of its cgroup, as of
    a pod with `limits.cpu`; at least 1.

    own, groups: where Linux shows this process's cgroups and their limits.
    """
    cores = len(os.sched_getaffinity(0))
    return max(1, int(min([cores, *_limits(own, groups)])))


def _limits(own: Path, groups: Path) -> Iterator[float]:
    """Yield the limit, in cores, of each cgroup that has one. Both versions of cgroups."""
    lines = own.read_text(encoding="utf-8").splitlines() if own.exists() else []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        names = controllers.split(",")
        root = groups / controllers if "cpu" in names else groups
        if controllers and "cpu" not in names:
            continue
        # A container sees its own cgroup as the root, whatever the path.
        folder = root / path.strip("/")
        for each in {root, folder, *(up for up in folder.parents if up.is_relative_to(root))}:
            try:
                if controllers:
                    quota = (each / "cpu.cfs_quota_us").read_text()
                    period = (each / "cpu.cfs_period_us").read_text()
                else:
                    quota, period = (each / "cpu.max").read_text().split()
                if quota.strip() not in ("max", "-1"):
                    yield int(quota) / int(period)
            except OSError:  # no limit there
                continue
