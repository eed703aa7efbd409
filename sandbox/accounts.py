"""What the processes of a slot use together, read from /proc: for where no cgroup counts it, and for files that have no name any more.

A process is read before its children, so that what a child worked is never seen twice: there, and again in the parent that has waited for it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
from collections.abc import Iterator

SAMPLE_S = 0.01
AT_ONCE = 4  # processes that several may begin at the same moment, beyond the limit
FILE_BYTES = 64 * 2**20  # the most that one file holds
_CLOCK, _PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
_STATE, _CHILDREN_WORKED, _WORKED, _TASKS = (
    0,
    slice(13, 15),
    slice(11, 15),
    17,
)  # of /proc/PID/stat behind the name
_libc = ctypes.CDLL(None)


class Accounts:
    """Of one zygote: a slot runs one job at a time, so what is below it is the job's.

    Raises nothing for a process that ends while it is looked at.
    """

    def __init__(self, zygote: int, uid: int | None, folder: str | None) -> None:
        """uid: of the programs, where it is not ours. folder: where they write, if it has no size of its own."""
        self.zygote, self.uid = zygote, uid
        self.device = os.stat(folder).st_dev if folder else 0
        self.peak_bytes = 0
        self._memory_bytes, self._processes = 0, 0
        self._tasks, self._shared_bytes = 0, 0
        self._worked_s = 0.0
        self._base_bytes = self._pss(zygote) or 0  # an interpreter that every program shares

    def begin(self, memory_bytes: int, processes: int) -> None:
        """A program with these limits, of one process; nothing of the last one is left."""
        self._memory_bytes, self._processes = memory_bytes, processes
        self._tasks, self._shared_bytes, self.peak_bytes = 1, 0, 0

    def cpu_s(self) -> float:
        """Of all jobs so far."""
        ticks = sum(map(int, _stat(self.zygote)[_CHILDREN_WORKED]))
        ticks += sum(sum(map(int, fields[_WORKED])) for _, fields in self._below())
        self._worked_s = max(self._worked_s, ticks / _CLOCK)
        return self._worked_s

    def starved_s(self) -> float:
        """How long the process that waited longest for a processor did so: what else runs on the machine, it is not its own time."""
        waited = (_read(f"/proc/{pid}/schedstat").split() for pid, _ in self._below())
        return max((int(fields[1]) / 1e9 for fields in waited if len(fields) > 1), default=0.0)

    def may_fork(self) -> bool:
        """Whether one process or thread more is within the limit; it counts as begun. Only what has ended since is looked for."""
        if self._tasks >= self._processes:
            self._tasks = self._running()
        if self._tasks >= self._processes:
            return False
        self._tasks += 1
        return True

    def may_share(self, size: int) -> bool:
        """Whether that much more may be memory to share. It stays there while nobody's page table says so, so it counts until the job ends."""
        if self._shared_bytes + size > self._memory_bytes:
            return False
        self._shared_bytes += size
        return True

    def is_file(self, pid: int, handle: int) -> bool:
        """Whether this is an ordinary file, which has a limit of its own. Not said where another thread could put something else in its place."""
        try:
            with self._as_program():
                return len(os.listdir(f"/proc/{pid}/task")) == 1 and stat.S_ISREG(
                    os.stat(f"/proc/{pid}/fd/{handle}").st_mode
                )
        except OSError:
            return False

    def excess(self) -> str:
        """What is more than its limit now, "memory" or "processes", or ""."""
        if self._memory() > self._memory_bytes:
            return "memory"
        return "processes" if self._running() > self._processes + AT_ONCE else ""

    def unnamed_bytes(self) -> int:
        """Of files that were removed and that a process has open or mapped. One that is only mapped and may not be looked at counts as full."""
        found: dict[int, int] = {}
        for pid, fields in self._below():
            task = _task(pid, fields)
            with self._as_program(), contextlib.suppress(OSError):
                for name in os.listdir(f"{task}/fd"):
                    self._note(f"{task}/fd/{name}", found, None)
                for part, inode in _removed(task, self.device):
                    self._note(f"{task}/map_files/{part}", found, inode)
        return sum(found.values())

    def _note(self, link: str, found: dict[int, int], inode: int | None) -> None:
        try:
            seen = os.stat(link)
            if seen.st_dev == self.device and seen.st_nlink == 0 and stat.S_ISREG(seen.st_mode):
                found[seen.st_ino] = seen.st_blocks * 512
        except PermissionError:
            if inode is not None:
                found.setdefault(inode, FILE_BYTES)
        except OSError:  # closed meanwhile
            pass

    def _memory(self) -> int:
        """What no look at each page can make less comes first, as it is cheap."""
        below = list(self._below())
        most = sum(_anonymous(_task(pid, fields)) for pid, fields in below) + self._shared_bytes
        if most > self._memory_bytes:
            parts = [self._pss(pid, fields) for pid, fields in below]
            if None not in parts and (own := self._pss(self.zygote)) is not None:
                most = (
                    max(0, own + sum(part or 0 for part in parts) - self._base_bytes)
                    + self._shared_bytes
                )
        self.peak_bytes = max(self.peak_bytes, most)
        return most

    def _pss(self, pid: int, fields: list[str] | None = None) -> int | None:
        """Anonymous memory, what is shared in parts; None where it is not to be seen."""
        with self._as_program() if fields else contextlib.nullcontext():
            try:
                with open(f"{_task(pid, fields or _stat(pid))}/smaps_rollup", "rb") as file:
                    lines = file.read().splitlines()
            except (FileNotFoundError, ProcessLookupError):
                return 0
            except OSError:
                return None
        return sum(
            int(line.split()[1]) * 1024
            for line in lines
            if line.startswith((b"Pss_Anon:", b"SwapPss:"))
        )

    def _running(self) -> int:
        return sum(int(fields[_TASKS]) for _, fields in self._below())

    def _below(self) -> Iterator[tuple[int, list[str]]]:
        """Each process below the zygote, with what its stat says."""
        waiting, seen = _children(self.zygote), {self.zygote}
        while waiting:
            if (pid := waiting.pop()) in seen:
                continue
            seen.add(pid)
            if fields := _stat(pid):
                yield pid, fields
                waiting += _children(pid)

    @contextlib.contextmanager
    def _as_program(self) -> Iterator[None]:
        """Who has lost the right to see other users' processes is one of them while he looks."""
        if self.uid is None:
            yield
            return
        _libc.setfsgid(self.uid)
        _libc.setfsuid(self.uid)
        try:
            yield
        finally:
            _libc.setfsuid(os.geteuid())
            _libc.setfsgid(os.getegid())


def _read(path: str) -> str:
    """Nothing of a process that is gone."""
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _stat(pid: int) -> list[str]:
    return _read(f"/proc/{pid}/stat").rpartition(")")[2].split()


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            found += map(int, _read(f"/proc/{pid}/task/{task}/children").split())
    return found


def _task(pid: int, fields: list[str]) -> str:
    """Where the memory and the files of a process are to be seen: not in its first thread, if that has ended before the others."""
    if fields and fields[_STATE] == "Z":
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{pid}/task"):
                if int(task) != pid:
                    return f"/proc/{pid}/task/{task}"
    return f"/proc/{pid}"


def _anonymous(task: str) -> int:
    _, resident, of_files, *_ = map(int, _read(f"{task}/statm").split() or (0, 0, 0))
    return max(0, resident - of_files) * _PAGE


def _removed(task: str, device: int) -> Iterator[tuple[str, int]]:
    """The parts of memory that are files of this device without a name, as `map_files` calls them."""
    with open(
        f"{task}/maps", errors="replace", newline="\n"
    ) as file:  # names may hold any other byte
        for line in file:
            if line.endswith(" (deleted)\n"):
                part, _, _, on, inode, *_ = line.split()
                if on == f"{os.major(device):02x}:{os.minor(device):02x}":
                    yield "-".join(f"{int(end, 16):x}" for end in part.split("-")), int(inode)
