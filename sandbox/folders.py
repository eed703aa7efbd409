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
        here = _opened(folder, None, unlock)
    except OSError:
        return
    # The way down: name of the next folder, identity of this one, names of its siblings.
    above: list[tuple[str, tuple[int, int], list[str]]] = []
    try:
        folders = yield from _files(here)
        while folders or above:
            if folders:
                name = folders.pop()
                with contextlib.suppress(OSError):  # gone meanwhile, or unreadable
                    inner = _opened(name, here, unlock)
                    above.append((name, _identity(here), folders))
                    os.close(here)
                    here = inner
                    folders = yield from _files(here)
                continue
            name, identity, folders = above.pop()
            outer = os.open("..", _FOLDER, dir_fd=here)
            os.close(here)
            here = outer
            if _identity(here) != identity:
                return
            yield here, name, True
    except OSError:
        return
    finally:
        os.close(here)


def empty(folder: str, until: float = inf) -> None:
    """Remove what lies below, whatever its permissions. Stops at `until` (of time.monotonic), and
    leaves what is in use.
    """
    for here, name, is_folder in below(folder, unlock=True):
        with contextlib.suppress(OSError):
            os.rmdir(name, dir_fd=here) if is_folder else os.unlink(name, dir_fd=here)
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
    found = 0
    for names, (here, name, _) in enumerate(below(folder), 1):
        with contextlib.suppress(OSError):  # gone meanwhile
            found += os.stat(name, dir_fd=here, follow_symlinks=False).st_blocks * 512
        if names > most_names:
            return TOO_MUCH
    return found


def _files(here: int) -> Generator[tuple[int, str, bool], None, list[str]]:
    """Yield the entries that are not folders; return the names of the folders."""
    folders = []
    with os.scandir(here) as found:
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            else:
                yield here, entry.name, False
    return folders


def _opened(name: str, here: int | None, unlock: bool) -> int:
    """Return the descriptor of a folder; links are not followed."""
    try:
        handle = os.open(name, _FOLDER, dir_fd=here)
    except PermissionError:
        if not unlock:
            raise
        locked = os.open(name, _FOLDER | os.O_PATH, dir_fd=here)
        try:
            os.chmod(f"/proc/self/fd/{locked}", 0o700)
        finally:
            os.close(locked)
        handle = os.open(name, _FOLDER, dir_fd=here)
    if unlock and not os.access(
        ".", os.R_OK | os.W_OK | os.X_OK, dir_fd=handle, effective_ids=True
    ):
        with contextlib.suppress(OSError):  # another user's: leave it as it is
            os.fchmod(handle, 0o700)
    return handle


def _identity(handle: int) -> tuple[int, int]:
    found = os.fstat(handle)
    return found.st_dev, found.st_ino
