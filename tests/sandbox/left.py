"""What sandboxes have on this machine, and must not leave there. Other sandboxes, and other threads, come and go while we look."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def slot_cgroups() -> dict[Path, int]:
    """Every control group of a slot, anywhere, with its worker's pid: glob would raise when one of another sandbox is removed."""
    found = (Path(root) / name for root, names, _ in os.walk("/sys/fs/cgroup") for name in names if name.startswith("ratchet-"))
    return {path: int(path.name.split("-")[1]) for path in found}


def children(pid: int) -> list[int]:
    """psutil's looks at every process of the machine: too slow for who wants to strike before a process has started."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):  # a thread that has ended says nothing about the others
                found += map(int, (task / "children").read_text().split())
    return found


def descendants(pid: int) -> set[int]:
    return {below for child in children(pid) for below in (child, *descendants(child))}
