"""Measures and removes a folder that a program filled, step by step through descriptors.

No path is built from names that a program chose, so none can be too long. Nothing recurses, so
nothing can be too deep. At most three descriptors are open. Links are removed and never followed.
"""

# ruff: noqa: PTH101, PTH106

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Generator, Iterator
from math import inf

TOO_MUCH = 1 << 60  # returned as the size of a folder with too many names
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def below(folder: str, *, unlock: bool = False) -> Iterator[tuple[int, str, bool]]:
    """Yield everything below a folder: the descriptor of the folder it is in, its name, and whether
    it is a folder. A folder comes after its contents.

    unlock: make each folder readable and writable to us first. What cannot be read is skipped. The
        iteration ends early if a folder is moved meanwhile; the caller can repeat it.
    """
    try:
        descriptor = _opened(folder, None, unlock)
    except OSError:
        return
    # The way down: name of the next folder, identity of this one, names of its siblings.
    above: list[tuple[str, tuple[int, int], list[str]]] = []
    try:
        folders = yield from _files(descriptor)
        while folders or above:
            if folders:
                name = folders.pop()
                with contextlib.suppress(OSError):  # gone meanwhile, or unreadable
                    inner = _opened(name, descriptor, unlock)
                    above.append((name, _identity(descriptor), folders))
                    os.close(descriptor)
                    descriptor = inner
                    folders = yield from _files(descriptor)
                continue
            name, identity, folders = above.pop()
            outer = os.open("..", _FOLDER, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = outer
            if _identity(descriptor) != identity:
                return
            yield descriptor, name, True
    except OSError:
        return
    finally:
        os.close(descriptor)


def empty(folder: str, until: float = inf) -> None:
    """Remove what lies below, whatever its permissions. Stops at `until` (of time.monotonic), and
    leaves what is in use.
    """
    for descriptor, name, is_folder in below(folder, unlock=True):
        with contextlib.suppress(OSError):
            os.rmdir(name, dir_fd=descriptor) if is_folder else os.unlink(name, dir_fd=descriptor)
        if time.monotonic() > until:
            return


def remove(folder: str, until: float = inf) -> None:
    """Like `empty`, then remove the folder. What cannot be removed stays; no error is raised."""
    empty(folder, until)
    with contextlib.suppress(OSError):
        os.rmdir(folder)


def size(folder: str, most_names: int) -> int:
    """Return the bytes below a folder; TOO_MUCH if there are more than this many names, and then
    the rest is not read.
    """
    total = 0
    for names, (descriptor, name, _) in enumerate(below(folder), 1):
        with contextlib.suppress(OSError):  # gone meanwhile
            total += os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_blocks * 512
        if names > most_names:
            return TOO_MUCH
    return total


def _files(descriptor: int) -> Generator[tuple[int, str, bool], None, list[str]]:
    """Yield the entries that are not folders; return the names of the folders."""
    folders = []
    with os.scandir(descriptor) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            else:
                yield descriptor, entry.name, False
    return folders


def _opened(name: str, parent: int | None, unlock: bool) -> int:
    """Return the descriptor of a folder; links are not followed."""
    try:
        opened = os.open(name, _FOLDER, dir_fd=parent)
    except PermissionError:
        if not unlock:
            raise
        locked = os.open(name, _FOLDER | os.O_PATH, dir_fd=parent)
        try:
            os.chmod(f"/proc/self/fd/{locked}", 0o700)
        finally:
            os.close(locked)
        opened = os.open(name, _FOLDER, dir_fd=parent)
    if unlock and not os.access(
        ".", os.R_OK | os.W_OK | os.X_OK, dir_fd=opened, effective_ids=True
    ):
        with contextlib.suppress(OSError):  # another user's: leave it as it is
            os.fchmod(opened, 0o700)
    return opened


def _identity(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino
