"""A circuit breaker: a version that fails gets no more requests for a while.

closed: all requests pass. open: none does, for `open_s`. half-open: a few probe the version; as
many successes close it, one failure opens it again. Source: Nygard 2007, Release It!, chapter 5.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Literal

from resources.config.serving import Breaker

State = Literal["closed", "open", "half-open"]


class CircuitBreaker:
    """Decides when a version gets no more requests for a while.

    clock: seconds that never go back.
    """

    def __init__(self, settings: Breaker, clock: Callable[[], float] = time.monotonic) -> None:
        self.settings, self.clock = settings, clock
        self._recent: deque[bool] = deque(maxlen=settings.window)
        self._in_a_row = 0
        self._opened_at: float | None = None
        self._probing = self._probed = 0

    @property
    def state(self) -> State:
        if self._opened_at is None:
            return "closed"
        waited = self.clock() - self._opened_at >= self.settings.open_s
        return "half-open" if waited else "open"

    @property
    def opens_in_s(self) -> float:
        """Seconds until probes are allowed."""
        if self._opened_at is None:
            return 0.0
        return max(0.0, self._opened_at + self.settings.open_s - self.clock())

    def enter(self) -> bool:
        """Return whether a request may pass. Each that does ends with `record` or `leave`."""
        if self.state == "closed":
            return True
        if self.state == "open" or self._probing >= self.settings.probes:
            return False
        self._probing += 1
        return True

    def record(self, ok: bool, seconds: float) -> None:
        """Count the outcome of a request that entered; a slow one is a failure."""
        ok = ok and seconds <= self.settings.slow_s
        if self.state == "open":
            return  # it began before
        if self._opened_at is not None:
            self.leave()
            self._probed = self._probed + 1 if ok else 0
            if not ok:
                self._opened_at = self.clock()
            elif self._probed >= self.settings.probes:
                self._opened_at, self._probed, self._in_a_row = None, 0, 0
                self._recent.clear()
            return
        self._recent.append(ok)
        self._in_a_row = 0 if ok else self._in_a_row + 1
        failures = len(self._recent) - sum(self._recent)
        full = len(self._recent) == self.settings.window
        if self._in_a_row >= self.settings.consecutive or (
            full and failures >= self.settings.share * self.settings.window
        ):
            self._opened_at, self._probing, self._probed = self.clock(), 0, 0

    def leave(self) -> None:
        """Forget a request that entered and says nothing about the version."""
        self._probing = max(0, self._probing - 1)
