"""Where cgroup version 2 lets us make slots: a cgroup that is ours to arrange, and that hands memory and pids down to its children.

The kernel hands controllers down only from a cgroup without processes of its own; the machine's root alone is excepted. So all processes of such a
cgroup, ours and those beside us, move into one child, `ratchet.main`, as Docker's image of itself does. They stay counted and limited by the
cgroup they were in. The child stays: it goes with the cgroup that it is in. The controller `cpu` is not handed down: all that moved would have
together no more of a processor than one program.
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
_UNITS = (
    ".service",
    ".scope",
    ".slice",
    ".mount",
    ".socket",
    ".swap",
)  # of systemd, which alone arranges them but where it is told Delegate=yes
_MARKS = ("user.delegate", "trusted.delegate")  # with which it says so


def parent_of_slots(own: Path, root: Path) -> Path:
    """The cgroup below which slots can be made; its processes are moved where they must be.

    own: our cgroup, below `root`, where version 2 is mounted.
    Raises OSError where we may not, or the kernel does not let us.
    """
    if str(os.getpid()) not in _words(own / "cgroup.procs"):
        raise PermissionError(
            errno.EPERM, f"{own} is not our cgroup: what is mounted belongs to somebody else"
        )
    folder = own.parent if _has_room_beside(own, root) else own
    if not is_ours(folder, root):
        raise PermissionError(errno.EPERM, f"{folder} is not ours to arrange")
    hand_down(folder, CONTROLLERS)
    return folder


def is_ours(folder: Path, root: Path) -> bool:
    """Whether nobody else arranges this cgroup: a container's own, or one that was delegated, by systemd's mark or, to a user, by its owner."""
    in_container = (root / "cgroup.type").exists()  # the machine's root has no type
    if folder == root or any(_mark(folder, name) == b"1" for name in _MARKS):
        return True
    return folder.suffix not in _UNITS and (
        in_container or folder.stat().st_uid == os.geteuid() != 0
    )


def _has_room_beside(own: Path, root: Path) -> bool:
    """Whether we are in a leaf made for us, by ourselves or as by DelegateSubgroup=, with no limits of its own that slots beside it would escape."""
    parent = own.parent
    if own == root or (parent == root and not (root / "cgroup.type").exists()):
        return False
    bounded = any(
        not (own / name).read_text().startswith("max") for name in _LIMITS if (own / name).exists()
    )
    return is_ours(parent, root) and not bounded and not _words(parent / "cgroup.procs")


def hand_down(folder: Path, controllers: tuple[str, ...]) -> None:
    """Children of `folder` get these controllers. Safe to be called by several processes at once. Raises OSError where that cannot be had."""
    if set(controllers) <= set(_words(folder / "cgroup.subtree_control")):
        return
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(
            lock, fcntl.LOCK_EX
        )  # else one who is late moves a zygote out of the slot that another has made for it
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
        raise PermissionError(
            errno.EPERM, f"{folder} holds processes that are not to be seen from here"
        )
    (folder / MAIN).mkdir(exist_ok=True)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
            (folder / MAIN / "cgroup.procs").write_text(pid)


def _words(path: Path) -> list[str]:
    return path.read_text().split()


def _mark(folder: Path, name: str) -> bytes:
    try:
        return os.getxattr(folder, name)
    except OSError:  # none, or not to be read by us
        return b""
