"""Where a training step's time goes: verl's timers, torch's traces, and Ray's timeline of the run.

In: a job's folder. Out: seconds by phase, by operation, by Ray task. Only reads files.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from artifacts.integrity import reading
from verl_jobs.config.overrides import TRACES

TIMER = "timing_s/"
FIX = "restore it from a backup, or delete it"
WHOLE = f"{TIMER}step"
OUTSIDE = "testing"  # a phase between the steps


@dataclass(frozen=True)
class Duration:
    """Time of a phase, operation or task.

    seconds: of one step for a phase, of everything traced for the others; times: number of steps,
    or of calls; share: of the time of all steps, for a phase that is part of it.
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


def operations(folder: Path) -> list[Duration]:
    """Return the self time of torch's operations over all traces of the job, longest first.

    Self time excludes nested operations.
    """
    seconds: dict[str, float] = defaultdict(float)
    calls: dict[str, int] = defaultdict(int)
    for path in sorted((folder / TRACES).glob("*.json.gz")):
        with reading(path, FIX), gzip.open(path, "rt", encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        for name, own in _own_times(
            event
            for event in events
            if event.get("ph") == "X" and event.get("cat") in ("cpu_op", "kernel")
        ):
            seconds[name] += own / 1e6
            calls[name] += 1
    return sorted(
        (Duration(name, total, calls[name]) for name, total in seconds.items()),
        key=lambda each: -each.seconds,
    )


def tasks(folder: Path) -> list[Duration]:
    """Return the time of Ray's tasks and actor methods over the whole run, longest first.

    Waiting inside a task counts as its time.
    """
    path = folder / TRACES / "timeline.json"
    seconds: dict[str, float] = defaultdict(float)
    calls: dict[str, int] = defaultdict(int)
    events: list[dict[str, Any]] = []
    if path.exists():
        with reading(path, FIX):
            events = list(json.loads(path.read_text(encoding="utf-8")))
    for event in events:
        if event.get("ph") == "X" and str(event.get("cat", "")).startswith("task::"):
            name = event["cat"].removeprefix("task::")
            seconds[name] += event["dur"] / 1e6
            calls[name] += 1
    return sorted(
        (Duration(name, total, calls[name]) for name, total in seconds.items()),
        key=lambda each: -each.seconds,
    )


def _own_times(events: Iterable[dict[str, Any]]) -> Iterable[tuple[str, float]]:
    """Yield each event with its self time in microseconds.

    Self time is the duration without that of its children on the same thread.
    """
    open_events: dict[Any, list[list[Any]]] = defaultdict(list)
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        stack = open_events[event["pid"], event["tid"]]
        while stack and stack[-1][1] <= event["ts"]:
            name, _, own = stack.pop()
            yield name, own
        if stack:
            stack[-1][2] -= event["dur"]
        stack.append([event["name"], event["ts"] + event["dur"], event["dur"]])
    for stack in open_events.values():
        yield from ((name, own) for name, _, own in stack)
