"""Core lock of two workers: one runs its program while the other cleans up its last one and sets up
the next.

As many programs run at once as without the lock, but the work between them is done on another core.
"""

from __future__ import annotations

import fcntl
import time


class CoreLock:
    """One worker's part of the lock. shared: a descriptor of a file in memory, and the byte of it
    that both workers lock; None for a worker without a partner.
    """

    def __init__(self, shared: tuple[int, int] | None) -> None:
        self.shared = shared
        self.waited_s = 0.0
        self._held = False

    def take(self) -> None:
        """Wait until no program of the other worker runs. The kernel releases the lock of a process
        that is killed.
        """
        if self.shared:
            since = time.monotonic()
            fcntl.lockf(self.shared[0], fcntl.LOCK_EX, 1, self.shared[1])
            self.waited_s += time.monotonic() - since
            self._held = True

    def give(self) -> None:
        if self.shared and self._held:
            fcntl.lockf(self.shared[0], fcntl.LOCK_UN, 1, self.shared[1])
            self._held = False
