"""What sandboxes have on this machine, and must not leave there. Other sandboxes, and other threads, come and go while we look."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psutil

from sandbox.isolation import cgroups, delegation


def slot_cgroups() -> dict[Path, int]:
    """Every control group of a slot, anywhere, with its worker's pid: glob would raise when one of another sandbox is removed."""
    found = (
        Path(root) / name
        for root, names, _ in os.walk("/sys/fs/cgroup")
        for name in names
        if name.startswith("ratchet-")
    )
    return {path: int(path.name.split("-")[1]) for path in found}


def slots_of_the_dead() -> list[str]:
    """Of our own control groups, which `cgroups.sweep` looks after: another sandbox may have been killed in its own a moment ago."""
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


def children(pid: int) -> list[int]:
    """psutil's looks at every process of the machine: too slow for who wants to strike before a process has started."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(
                OSError
            ):  # a thread that has ended says nothing about the others
                found += map(int, (task / "children").read_text().split())
    return found


def descendants(pid: int) -> set[int]:
    return {below for child in children(pid) for below in (child, *descendants(child))}


def left_behind(scratch: Path) -> dict[str, object]:
    """What of processes, mounts, files, shared segments and control groups is there, of us and in this folder for temporary files."""
    cgroups.sweep()
    return {
        "processes": sorted(process.pid for process in psutil.Process().children(recursive=True)),
        "mounts": len(Path("/proc/self/mountinfo").read_text().splitlines()),
        "scratch": sorted(path.name for path in scratch.iterdir()),
        "marked files": sorted(
            str(path)
            for folder in ("/tmp", "/dev/shm", "/var/tmp")
            for path in Path(folder).glob("hx47811*")
        ),
        "segments, semaphores, queues": [
            len(Path(f"/proc/sysvipc/{kind}").read_text().splitlines())
            for kind in ("shm", "sem", "msg")
        ],
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "control groups of the dead": slots_of_the_dead(),
    }


def reap(others: list[psutil.Process]) -> None:
    """Takes leave of what became ours: it has a moment to end by itself."""
    _, alive = psutil.wait_procs(
        [each for each in psutil.Process().children(recursive=True) if each not in others],
        timeout=20,
    )
    assert not alive, f"left behind: {alive}"
