"""A clock that stands still while this process does.

A process stands still when a signal stops it, or its container or virtual machine is paused. These
seconds say nothing about a version. (While a laptop sleeps, Linux' monotonic clock stands still.)
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import cache

TICK_S = 1.0
MIN_S = 5.0  # a shorter gap may be a busy machine


class RunningClock:
    """A clock that stands still while this process does.

    steady: seconds that never go back. More than `MIN_S` between two looks at it are a standstill,
    so a thread calls `now` every second (`running_clock`).
    """

    def __init__(self, steady: Callable[[], float] = time.monotonic) -> None:
        self.steady = steady
        self._lock = threading.Lock()
        self._looked, self._stood_still = steady(), 0.0

    def now(self) -> float:
        """Return seconds that never go back, without those of standstills."""
        with self._lock:
            now = self.steady()
            if (gap := now - self._looked) > MIN_S:
                self._stood_still += gap
            self._looked = now
            return now - self._stood_still

    @property
    def stood_still(self) -> float:
        """Seconds of all standstills until now."""
        self.now()
        return self._stood_still


@cache
def running_clock() -> RunningClock:
    """Return the clock of this process. A thread looks at it regularly."""
    clock = RunningClock()

    def look() -> None:
        while True:
            time.sleep(TICK_S)
            clock.now()

    threading.Thread(target=look, name="running clock", daemon=True).start()
    return clock
