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
    """Measures how long a step has lasted.

    steady: seconds that never go back.
    """

    def __init__(self, steady: Callable[[], float] | None = None) -> None:
        self.steady = steady or running_clock().now
        self._step: tuple[str, int] | None = None
        self._began = 0.0  # on the steady clock

    def now(self, release: Release, wall: float) -> float:
        """Return the present on the record's clock: the step's beginning and what has passed.

        wall: the machine's clock, in seconds since 1970.
        """
        if self._step != (release.id, release.step):
            age = max(0.0, wall - release.step_since)
            self._step, self._began = (release.id, release.step), self.steady() - age
        return release.step_since + self.steady() - self._began
