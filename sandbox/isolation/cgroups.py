"""A cgroup for one slot: counts and limits all processes of a program together. Supports version 1
and 2 if they are writable; otherwise there is none.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from pathlib import Path

from sandbox.isolation import delegation

_V1 = ("memory", "pids", "cpuacct", "cpu")
_ROOT = Path("/sys/fs/cgroup")
_UNIFIED = _ROOT / "unified"  # version 2 next to version 1
_NAME = "ratchet-"
_SLOT = re.compile(r"ratchet-(\d{1,10})-.*")  # contains its worker's pid


class Cgroup:
    """Holds a zygote and all its forks."""

    def __init__(self, folders: dict[str, Path]) -> None:
        self._folders = folders
        self._v2 = "unified" in folders
        memory = folders["unified" if self._v2 else "memory"]
        paths = self._paths(memory)
        self._peak = _resettable(paths.pop("peak"))
        self._files = {
            name: os.open(path, os.O_RDWR if name in ("limit", "pids") else os.O_RDONLY)
            for name, path in paths.items()
        }
        # Else what exceeds the limit goes to swap, and no program is ever killed for it.
        swap = memory / ("memory.swap.max" if self._v2 else "memory.swappiness")
        if swap.exists():
            swap.write_text("0")
        self._limit = 0
        self._pids = 0

    def _paths(self, memory: Path) -> dict[str, Path]:
        if self._v2:
            return {
                "limit": memory / "memory.max", "used": memory / "memory.current",
                "peak": memory / "memory.peak", "kills": memory / "memory.events",
                "cpu": memory / "cpu.stat", "pids": memory / "pids.max",
            }  # fmt: skip
        return {
            "limit": memory / "memory.limit_in_bytes",
            "used": memory / "memory.usage_in_bytes",
            "peak": memory / "memory.max_usage_in_bytes",
            "kills": memory / "memory.oom_control",
            "cpu": self._folders["cpuacct"] / "cpuacct.usage",
            "pids": self._folders["pids"] / "pids.max",
        }

    def limit(self, memory_bytes: int, processes: int) -> None:
        """Set the limits, writing only what differs from the last call; reset the peak."""
        if memory_bytes != self._limit:
            self._write("limit", memory_bytes)
            self._limit = memory_bytes
        if processes != self._pids:
            self._write("pids", processes)
            self._pids = processes
        if self._peak is not None:
            os.pwrite(self._peak, b"0", 0)

    def used_bytes(self) -> int:
        return int(self._read("used"))

    def peak_bytes(self) -> int | None:
        """Return the most memory used since `limit`; None if the kernel only reports the peak of
        all jobs (version 2 before Linux 6.12).
        """
        return None if self._peak is None else int(os.pread(self._peak, 64, 0))

    def oom_kills(self) -> int:
        """Return the number of processes that the kernel killed for memory, since the cgroup was
        created.
        """
        _, _, rest = self._read("kills").partition("\noom_kill ")  # never its first line
        return int(rest.partition("\n")[0] or 0)

    def cpu_s(self) -> float:
        text = self._read("cpu")
        return int(text.split()[1]) / 1e6 if self._v2 else int(text) / 1e9

    def remove(self) -> None:
        """Remove the cgroup. Its processes must be gone. It is no error if it was already
        removed.
        """
        for handle in (*self._files.values(), *([] if self._peak is None else [self._peak])):
            os.close(handle)
        self._files, self._peak = {}, None
        for folder in set(self._folders.values()):
            with contextlib.suppress(OSError):
                folder.rmdir()

    def _read(self, name: str) -> str:
        return os.pread(self._files[name], 4096, 0).decode()

    def _write(self, name: str, value: int) -> None:
        os.pwrite(self._files[name], str(value).encode(), 0)


def _resettable(peak: Path) -> int | None:
    """Open the peak counter if it can be reset. Version 2 resets it for the descriptor that writes,
    from Linux 6.12 on; version 1 resets it for all.
    """
    try:
        handle = os.open(peak, os.O_RDWR)
    except OSError:
        return None
    try:
        os.pwrite(handle, b"0", 0)
        return handle
    except OSError:
        os.close(handle)
        return None


def create(slot: str, pid: int) -> Cgroup | None:
    """Create a cgroup below ours (with version 2 possibly next to it) and move this process into
    it; return None if that is not possible.

    slot: starts with the pid of its owner. The cgroup is always a new one: an earlier one of this
        slot may still hold processes that are ending, and their memory would raise its limit.
    """
    created: dict[str, Path] = {}
    unique = secrets.token_hex(4)
    try:
        for name, parent in _parents().items():
            folder = parent / f"{_NAME}{slot}-{unique}"
            folder.mkdir()
            created[name] = folder
        cgroup = Cgroup(created)
        for folder in created.values():
            (folder / "cgroup.procs").write_text(str(pid))
        return cgroup
    except (OSError, KeyError):
        for folder in created.values():
            with contextlib.suppress(OSError):
                folder.rmdir()
        return None


def sweep() -> None:
    """Remove cgroups of killed owners. Never raises: others create and remove theirs meanwhile."""
    with contextlib.suppress(OSError):
        own = _own()
        beside = [own["unified"].parent] if "unified" in own else []
        for parent in {*own.values(), *beside}:
            for folder in parent.iterdir():
                if (slot := _SLOT.fullmatch(folder.name)) and not alive(int(slot[1])):
                    with contextlib.suppress(OSError):
                        folder.rmdir()


def alive(pid: int) -> bool:
    """Whether a process is alive; one that has ended and was not waited for is not. A process whose
    main thread has ended lives until its other threads have, and keeps its files open until then.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rsplit(")", 1)[1].split()
    except OSError:
        return False
    return fields[0] not in "ZX" or int(fields[17]) > 1


def _parents() -> dict[str, Path]:
    """Return the folders in which to create a slot's cgroups, by controller. Raises OSError or
    KeyError if there are none.
    """
    own = _own()
    while "memory" not in own and "unified" in own:
        try:
            return {
                "unified": delegation.parent_of_slots(
                    own["unified"], _UNIFIED if _UNIFIED.is_dir() else _ROOT
                )
            }
        except OSError:
            before, own = own, _own()
            if own == before:  # otherwise another owner has moved us meanwhile
                raise
    return {name: own[name] for name in _V1}


def _own() -> dict[str, Path]:
    """Return controller -> our folder in its hierarchy, as mounted in the usual place."""
    found = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for name in controllers.split(",") if controllers else ["unified"]:
            base = _ROOT / name if name != "unified" or _UNIFIED.is_dir() else _ROOT
            folder = base / path.lstrip("/")
            if (folder / "cgroup.procs").exists():
                found[name] = folder
    return found
