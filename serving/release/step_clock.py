"""How long a step has lasted, whatever a jump of the machine's clock says.

In: the record's time of a step's beginning, and two clocks. Out: seconds. A process that has seen
the step counts on the clock that never goes back; the other one only says how old the step was when
it was first seen. Seconds in which the process stood still do not count: nothing was observed then.
"""

from __future__ import annotations

from collections.abc import Callable

from resources.registry.releases import Release
from serving.running_clock import running_clock


class StepClock:
    """Measures how long a step has run; pauses do not count.

    steady: seconds that never go back.
    """

    def __init__(self, steady: Callable[[], float] | None = None) -> None:
        self.steady = steady or running_clock().now
        self._since: tuple[str, float] | None = None
        self._began = 0.0  # on the steady clock

    def ran(self, release: Release, wall: float) -> float:
        """Return the seconds that the present step has run.

        wall: the machine's clock, in seconds since 1970.
        """
        _, before, since = release.running()
        if since is None:
            return before
        if self._since != (release.id, since):
            age = max(0.0, wall - since)
            self._since, self._began = (release.id, since), self.steady() - age
        return before + self.steady() - self._began
