"""Where a training step's time goes, by verl's own timers.

In: a job's metrics. Out: seconds by phase.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

TIMER = "timing_s/"
WHOLE = f"{TIMER}step"
OUTSIDE = "testing"  # a phase between the steps


@dataclass(frozen=True)
class Duration:
    """Time of a phase.

    seconds: of one step; times: number of steps; share: of the time of all steps, for a phase that
    is part of a step.
    """

    name: str
    seconds: float
    times: int
    share: float | None = None


def phases(rows: Iterable[dict[str, Any]]) -> tuple[list[Duration], float]:
    """Return the median of each phase over the steps that have it, and the median step.

    The longest phase comes first, time without a timer last. The first step is left out if there
    are others, because it warms up. Validation is no part of a step: verl's step timer does not
    include it.
    """
    steps = [row for row in rows if WHOLE in row]
    steps = steps[1:] or steps
    if not steps:
        return [], 0.0
    names = {
        key.removeprefix(TIMER)
        for row in steps
        for key in row
        if key.startswith(TIMER) and key != WHOLE
    }
    values = {
        name: [float(row[TIMER + name]) for row in steps if TIMER + name in row] for name in names
    }
    all_steps = sum(float(row[WHOLE]) for row in steps)
    shares = {name: sum(each) / all_steps for name, each in values.items() if name != OUTSIDE}
    durations = sorted(
        (
            Duration(name, median(each), len(each), shares.get(name))
            for name, each in values.items()
        ),
        key=lambda duration: -duration.seconds,
    )
    whole = median(float(row[WHOLE]) for row in steps)
    rest = median(
        float(row[WHOLE]) - sum(float(row.get(TIMER + name, 0.0)) for name in names - {OUTSIDE})
        for row in steps
    )
    untimed = max(0.0, 1 - sum(shares.values()))
    return [*durations, Duration("(no timer)", max(0.0, rest), len(steps), untimed)], whole
