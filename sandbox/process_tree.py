"""The processes below this one: find them, kill them, reap them."""

from __future__ import annotations

import contextlib
import os
import signal
import time

_WALL = 0x40000000  # of waitpid: children that report their end by another signal too


_THREADS = 17  # place of their number in /proc/PID/stat, after the name


def kill_descendants() -> None:
    """Stops all descendants first, so that none forks meanwhile, then kills them. Where no pid namespace ends them with its first process."""
    stopped: set[int] = set()
    while new := _tree() - stopped:
        for pid in new:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        stopped |= new
    for pid in stopped:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def descendants_ended() -> bool:
    """Kills all descendants and reaps those that have ended; True when there is none left. To be called until then, by their subreaper."""
    kill_descendants()
    try:
        while os.waitpid(-1, os.WNOHANG | _WALL)[0]:
            pass
    except ChildProcessError:
        return True
    time.sleep(0.0005)
    return False


def _descendants() -> set[int]:
    """All that live. A process whose first thread has left by itself is shown as a zombie, and its other threads live on."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                with open(f"/proc/{name}/stat", errors="replace") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
                if fields[0] != "Z" or int(fields[_THREADS]) > 1:
                    parents[int(name)] = int(fields[1])
    found, grown = {os.getpid()}, True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        found |= more
        grown = bool(more)
    return found - {os.getpid()}


def _tree() -> set[int]:
    """As `_descendants`, and those that wait to be reaped: by few files, since each open is asked of the listener."""
    if not os.path.exists(
        f"/proc/self/task/{os.getpid()}/children"
    ):  # a kernel without CONFIG_PROC_CHILDREN
        return _descendants()
    found: set[int] = set()
    new = {os.getpid()}
    while new:
        new = {child for pid in new for child in _children(pid)} - found
        found |= new
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children") as file:
                found += map(int, file.read().split())
    return found
