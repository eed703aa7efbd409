"""The resources of sandboxes on this machine, which they must not leave behind.

Other sandboxes and other threads start and end while these functions read the state.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psutil

from sandbox.isolation import cgroups, delegation
from sandbox.isolation.process_tree import children
from sandbox.worker.slot import sweep

FIRST_UID = 200_000  # of programs, where they have a uid of their own


def slot_cgroups() -> dict[Path, int]:
    """Return every control group of a slot on this machine, with its worker's pid.

    glob would raise if a group of another sandbox is removed meanwhile.
    """
    paths = (
        Path(root) / name
        for root, names, _ in os.walk("/sys/fs/cgroup")
        for name in names
        if name.startswith("ratchet-")
    )
    return {path: int(path.name.split("-")[1]) for path in paths}


def slots_of_the_dead() -> list[str]:
    """Return the control groups of dead workers among our own, which `cgroups.sweep` cleans up.

    Another sandbox may have been killed a moment ago; its groups are its own concern.
    """
    own = {
        line.split(":", 2)[2].removesuffix(f"/{delegation.MAIN}")
        for line in Path("/proc/self/cgroup").read_text().splitlines()
    }
    ours = {
        path: pid
        for path, pid in slot_cgroups().items()
        if any(f"{group}/{path.name}" in str(path) for group in (own - {"/"} or {""}))
    }
    return sorted(str(path) for path, pid in ours.items() if not cgroups.alive(pid))


def descendants(pid: int) -> set[int]:
    return {below for child in children(pid) for below in (child, *descendants(child))}


def left_behind(scratch: Path) -> dict[str, object]:
    """Return the mounts, files, shared segments and control groups that exist now.

    Only those of this process, of programs and of this folder for temporary files count. A disk
    that another test mounts lies in that test's temporary folder, and does not count. A worker that
    is killed while it ends leaves its folder and its control group; the next sandbox sweeps them.
    """
    sweep(scratch)
    mountinfo = Path("/proc/self/mountinfo").read_text().splitlines()
    mounts = [Path(line.split()[4]) for line in mountinfo]
    return {
        "mounts": sorted(
            str(path)
            for path in mounts
            if path.is_relative_to(scratch)
            or not any(part.startswith("pytest-of-") for part in path.parts)
        ),
        "scratch": sorted(path.name for path in scratch.iterdir()),
        "marked files": sorted(
            str(path)
            for folder in ("/tmp", "/dev/shm", "/var/tmp")
            for path in Path(folder).glob("hx47811*")
        ),
        "segments, semaphores, queues": [of_programs(kind) for kind in ("shm", "sem", "msg")],
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "control groups of the dead": slots_of_the_dead(),
    }


def of_programs(kind: str) -> int:
    """Return how many of the machine's System V objects programs own. A database of another test
    owns some too, with our own uid."""
    head, *rows = Path(f"/proc/sysvipc/{kind}").read_text().splitlines()
    at = head.split().index("uid")
    return sum(int(row.split()[at]) >= FIRST_UID for row in rows)


def reap(others: set[int]) -> None:
    """Wait for processes that became our children; they get a moment to end on their own.

    others: processes of other tests. What these start, such as Ray its workers, is theirs too.
    """

    def foreign(process: psutil.Process) -> bool:
        with contextlib.suppress(psutil.Error):  # it has ended
            return not others.isdisjoint({process.pid, *(each.pid for each in process.parents())})
        return True

    new = [each for each in psutil.Process().children(recursive=True) if not foreign(each)]
    _, alive = psutil.wait_procs(new, timeout=20)
    assert not alive, f"left behind: {alive}"
