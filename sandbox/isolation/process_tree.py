"""Finds, kills and reaps the processes below this one."""

from __future__ import annotations

import contextlib
import os
import signal
import time

# __WALL of waitpid: includes children that report their end by a signal other than SIGCHLD
WALL = 0x40000000


_THREADS = 17  # index of the number of threads in /proc/PID/stat, after the name


def kill_descendants(root: int | None = None) -> None:
    """Stop all descendants of a process first (by default, of this one), so that none forks
    meanwhile, then kill them. For levels where no pid namespace ends them with its first process.
    """
    stopped: set[int] = set()
    while new := _tree(root or os.getpid()) - stopped:
        for pid in new:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        stopped |= new
    for pid in stopped:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def descendants_ended() -> bool:
    """Kill all descendants and reap those that have ended; return True when none is left. The
    subreaper calls this until then.
    """
    kill_descendants()
    try:
        while os.waitpid(-1, os.WNOHANG | WALL)[0]:
            pass
    except ChildProcessError:
        return True
    time.sleep(0.0005)
    return False


def _descendants(root: int) -> set[int]:
    """Return all living descendants. A process whose first thread has exited alone is shown as a
    zombie while its other threads live on.
    """
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                with open(f"/proc/{name}/stat", errors="replace") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
                if fields[0] != "Z" or int(fields[_THREADS]) > 1:
                    parents[int(name)] = int(fields[1])
    pids, grown = {root}, True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in pids} - pids
        pids |= more
        grown = bool(more)
    return pids - {root}


def _tree(root: int) -> set[int]:
    """Return the descendants, including those that wait to be reaped. It opens few files, because
    each open is checked by the listener.
    """
    # a kernel without CONFIG_PROC_CHILDREN
    if not os.path.exists(f"/proc/{root}/task/{root}/children"):
        return _descendants(root)
    pids: set[int] = set()
    new = {root}
    while new:
        new = {child for pid in new for child in children(pid)} - pids
        pids |= new
    return pids


def children(pid: int) -> list[int]:
    """Return the child processes of a process. A thread that has ended says nothing about the
    others.
    """
    pids: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children") as file:
                pids += map(int, file.read().split())
    return pids
