"""Usage of all processes of a slot, read from /proc: for levels without a cgroup, and for files
that no longer have a name.

A process is read before its children. Otherwise the CPU time of a child could be counted twice: in
the child, and then in the parent that has waited for it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
from collections.abc import Iterator

from sandbox.isolation.process_tree import children

SAMPLE_S = 0.01
AT_ONCE = 4  # processes that several may start at the same moment, beyond the limit
FILE_BYTES = 64 * 2**20  # largest size of one file
_CLOCK, _PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
# Fields of /proc/PID/stat after the name.
_STATE, _CHILDREN_WORKED, _WORKED, _TASKS = 0, slice(13, 15), slice(11, 15), 17
_libc = ctypes.CDLL(None)


class Accounts:
    """Usage below one zygote. A slot runs one job at a time, so everything below its zygote belongs
    to the job.

    Raises nothing for a process that ends while it is read.
    """

    def __init__(self, zygote: int, uid: int | None, folder: str | None) -> None:
        """uid: of the programs, if it is not ours. folder: where they write, if it has no size
        limit of its own.
        """
        self.zygote, self.uid = zygote, uid
        self.device = os.stat(folder).st_dev if folder else 0
        self.peak_bytes = 0
        self._memory_bytes, self._processes = 0, 0
        self._tasks, self._shared_bytes = 0, 0
        self._worked_s = 0.0
        self._base_bytes = self._pss(zygote) or 0  # an interpreter that every program shares

    def begin(self, memory_bytes: int, processes: int) -> None:
        """Start counting for a program of one process with these limits; nothing of the last
        program is left.
        """
        self._memory_bytes, self._processes = memory_bytes, processes
        self._tasks, self._shared_bytes, self.peak_bytes = 1, 0, 0

    def cpu_s(self) -> float:
        """Return the CPU seconds of all jobs so far."""
        ticks = sum(map(int, _stat(self.zygote)[_CHILDREN_WORKED]))
        ticks += sum(sum(map(int, fields[_WORKED])) for _, fields in self._below())
        self._worked_s = max(self._worked_s, ticks / _CLOCK)
        return self._worked_s

    def starved_s(self) -> float:
        """Return how long the process that waited longest for a core did so. Other load causes
        that, so it is not the program's own time.
        """
        waited = (_read(f"/proc/{pid}/schedstat").split() for pid, _ in self._below())
        return max((int(fields[1]) / 1e9 for fields in waited if len(fields) > 1), default=0.0)

    def may_fork(self) -> bool:
        """Whether one more process or thread is within the limit; if so, it counts as started.
        Processes are recounted only when the limit is reached.
        """
        if self._tasks >= self._processes:
            self._tasks = self._running()
        if self._tasks >= self._processes:
            return False
        self._tasks += 1
        return True

    def may_share(self, size: int) -> bool:
        """Whether this much more memory may be shared. It counts until the job ends, because it
        exists even if no page table maps it.
        """
        if self._shared_bytes + size > self._memory_bytes:
            return False
        self._shared_bytes += size
        return True

    def is_file(self, pid: int, handle: int) -> bool:
        """Whether this is a regular file, which has a size limit of its own. False if another
        thread could replace it meanwhile.
        """
        try:
            with self._as_program():
                return len(os.listdir(f"/proc/{pid}/task")) == 1 and stat.S_ISREG(
                    os.stat(f"/proc/{pid}/fd/{handle}").st_mode
                )
        except OSError:
            return False

    def excess(self) -> str:
        """Return which limit is exceeded now: "memory", "processes" or ""."""
        if self._memory() > self._memory_bytes:
            return "memory"
        return "processes" if self._running() > self._processes + AT_ONCE else ""

    def unnamed_bytes(self) -> int:
        """Return the size of removed files that a process has open or mapped. A file that is only
        mapped and cannot be read counts with the full size.
        """
        result: dict[int, int] = {}
        for pid, fields in self._below():
            task = _task(pid, fields)
            with self._as_program(), contextlib.suppress(OSError):
                for name in os.listdir(f"{task}/fd"):
                    self._note(f"{task}/fd/{name}", result, None)
                for part, inode in _removed(task, self.device):
                    self._note(f"{task}/map_files/{part}", result, inode)
        return sum(result.values())

    def _note(self, link: str, result: dict[int, int], inode: int | None) -> None:
        try:
            seen = os.stat(link)
            if seen.st_dev == self.device and seen.st_nlink == 0 and stat.S_ISREG(seen.st_mode):
                result[seen.st_ino] = seen.st_blocks * 512
        except PermissionError:
            if inode is not None:
                result.setdefault(inode, FILE_BYTES)
        except OSError:  # closed meanwhile
            pass

    def _memory(self) -> int:
        """Return the memory in use. A cheap upper bound comes first; pages are examined only if it
        exceeds the limit.
        """
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
        """Return anonymous memory, with shared pages divided; None if it cannot be read."""
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
        """Yield each process below the zygote, with the fields of its stat."""
        pending, seen = children(self.zygote), {self.zygote}
        while pending:
            if (pid := pending.pop()) in seen:
                continue
            seen.add(pid)
            if fields := _stat(pid):
                yield pid, fields
                pending += children(pid)

    @contextlib.contextmanager
    def _as_program(self) -> Iterator[None]:
        """Take the programs' uid while reading, if we may not look at other users' processes."""
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
    """Return a file's text, or nothing for a process that is gone."""
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _stat(pid: int) -> list[str]:
    return _read(f"/proc/{pid}/stat").rpartition(")")[2].split()


def _task(pid: int, fields: list[str]) -> str:
    """Return the folder of /proc that shows a process's memory and files. If the first thread has
    ended before the others, that is another thread's.
    """
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
    """Yield the mappings of this device's files that have no name, as `map_files` calls them."""
    # names may contain any other byte
    with open(f"{task}/maps", errors="replace", newline="\n") as file:
        for line in file:
            if line.endswith(" (deleted)\n"):
                part, _, _, on, inode, *_ = line.split()
                if on == f"{os.major(device):02x}:{os.minor(device):02x}":
                    yield "-".join(f"{int(end, 16):x}" for end in part.split("-")), int(inode)
