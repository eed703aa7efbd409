"""Where cgroup version 2 lets us create slots: a cgroup that we may manage and that passes memory
and pids to its children.

The kernel passes controllers only from a cgroup without processes of its own; the machine's root is
the only exception. So all processes of such a cgroup, including those that are not ours, are moved
into one child, `ratchet.main`, as Docker's own image does. They stay counted and limited by the
cgroup that they were in. The child remains and is removed together with its parent. The controller
`cpu` is not passed: all moved processes together would get no more of a core than one program.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from pathlib import Path

MAIN = "ratchet.main"
CONTROLLERS = ("memory", "pids")
TRIES = 50  # a process that forks while it is moved leaves its child behind
_LIMITS = ("memory.max", "memory.high", "pids.max", "cpu.max")
# units of systemd, which manages them alone, except with Delegate=yes
_UNITS = (".service", ".scope", ".slice", ".mount", ".socket", ".swap")
_MARKS = ("user.delegate", "trusted.delegate")  # attributes that mark a delegated cgroup


def parent_of_slots(own: Path, root: Path) -> Path:
    """Return the cgroup in which slots can be created; processes are moved if necessary.

    own: our cgroup, below `root`, where version 2 is mounted.
    Raises OSError if we may not do that, or the kernel refuses.
    """
    if str(os.getpid()) not in _words(own / "cgroup.procs"):
        raise PermissionError(
            errno.EPERM, f"{own} does not contain this process: another cgroup tree is mounted here"
        )
    folder = own.parent if _has_room_beside(own, root) else own
    if not is_ours(folder, root):
        raise PermissionError(errno.EPERM, f"{folder} is managed by another process")
    hand_down(folder, CONTROLLERS)
    return folder


def is_ours(folder: Path, root: Path) -> bool:
    """Whether nobody else manages this cgroup: a container's own, or a delegated one (marked by
    systemd, or owned by our user).
    """
    in_container = (root / "cgroup.type").exists()  # the machine's root has no type
    if folder == root or any(_mark(folder, name) == b"1" for name in _MARKS):
        return True
    return folder.suffix not in _UNITS and (
        in_container or folder.stat().st_uid == os.geteuid() != 0
    )


def _has_room_beside(own: Path, root: Path) -> bool:
    """Whether we are in a leaf made for us, by ourselves or by DelegateSubgroup=, without limits
    that slots next to it would escape.
    """
    parent = own.parent
    if own == root or (parent == root and not (root / "cgroup.type").exists()):
        return False
    bounded = any(
        not (own / name).read_text().startswith("max") for name in _LIMITS if (own / name).exists()
    )
    return is_ours(parent, root) and not bounded and not _words(parent / "cgroup.procs")


def hand_down(folder: Path, controllers: tuple[str, ...]) -> None:
    """Give the children of `folder` these controllers. Several processes may call this at once.
    Raises OSError if it is not possible.
    """
    if set(controllers) <= set(_words(folder / "cgroup.subtree_control")):
        return
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # Without the lock, a late process would move a zygote out of the slot that another process
        # has made for it.
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in reversed(range(TRIES)):
            try:
                (folder / "cgroup.subtree_control").write_text(
                    " ".join(f"+{name}" for name in controllers)
                )
                return
            except OSError as refusal:
                if refusal.errno != errno.EBUSY or not left:
                    raise
            _move_down(folder)
    finally:
        os.close(lock)


def _move_down(folder: Path) -> None:
    pids = _words(folder / "cgroup.procs")
    if "0" in pids:
        raise PermissionError(errno.EPERM, f"{folder} has processes that are not visible from here")
    (folder / MAIN).mkdir(exist_ok=True)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
            (folder / MAIN / "cgroup.procs").write_text(pid)


def _words(path: Path) -> list[str]:
    return path.read_text().split()


def _mark(folder: Path, name: str) -> bytes:
    try:
        return os.getxattr(folder, name)
    except OSError:  # no such attribute, or not readable for us
        return b""
