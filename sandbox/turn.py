"""Turns: two workers of which one has its program run while the other's last one is cleaned away and its next is set up.

As many programs run at once as without, but the seconds between them are worked on another core.
"""

from __future__ import annotations

import fcntl
import time


class Turn:
    """One worker's part. shared: a descriptor of a file in memory and a byte of it, which both lock; None for a worker that has no other."""

    def __init__(self, shared: tuple[int, int] | None) -> None:
        self.shared = shared
        self.waited_s = 0.0
        self._held = False

    def take(self) -> None:
        """Waits until no program of the other worker runs. The lock is the process's: one that is killed has given it."""
        if self.shared:
            since = time.monotonic()
            fcntl.lockf(self.shared[0], fcntl.LOCK_EX, 1, self.shared[1])
            self.waited_s += time.monotonic() - since
            self._held = True

    def give(self) -> None:
        if self.shared and self._held:
            fcntl.lockf(self.shared[0], fcntl.LOCK_UN, 1, self.shared[1])
            self._held = False
