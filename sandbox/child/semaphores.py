"""Refuses the semaphores of `multiprocessing` by name on the isolation level without `/dev/shm`."""

from __future__ import annotations

import _multiprocessing  # type: ignore[import-not-found]
import errno


class SemLock:
    """What `multiprocessing` makes of every lock, queue and pool."""

    SEM_VALUE_MAX = _multiprocessing.SemLock.SEM_VALUE_MAX

    def __init__(self, *_: object) -> None:
        raise OSError(
            errno.ENOSYS,
            "this isolation level (bare) has no semaphores: locks, queues and pools of "
            "multiprocessing need the level userns or root",
        )


def refuse() -> None:
    """Make locks, queues and pools of `multiprocessing` raise an OSError that names the level."""
    _multiprocessing.SemLock = SemLock
