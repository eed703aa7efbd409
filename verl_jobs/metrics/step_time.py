"""Where a training step's time goes: verl's own timers of every step, torch's trace of those that were traced, Ray's timeline of the run.

In: a job's folder. Out: seconds by phase, by operation, by Ray task. Reads files alone.
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

from verl_jobs.config.overrides import TRACES

TIMER = "timing_s/"
WHOLE = f"{TIMER}step"
OCCASIONAL = ("testing", "save_checkpoint")  # not in every step


@dataclass(frozen=True)
class Spent:
    """seconds: of one step for a phase, of all that was traced for the others; times: in how many steps, how many calls."""

    name: str
    seconds: float
    times: int


def phases(rows: Iterable[dict[str, Any]]) -> tuple[list[Spent], float]:
    """The median of each phase over the steps that have it, longest first, what no timer names last; and the median step.

    The first step is left out where there are others: it warms up. Occasional phases are not part of verl's step timer's rest.
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
    found = sorted(
        (Spent(name, median(each), len(each)) for name, each in values.items()),
        key=lambda spent: -spent.seconds,
    )
    whole = median(float(row[WHOLE]) for row in steps)
    rest = median(
        float(row[WHOLE]) - sum(float(row.get(TIMER + name, 0.0)) for name in names - {"testing"})
        for row in steps
    )
    return [*found, Spent("(no timer)", max(0.0, rest), len(steps))], whole


def operations(folder: Path) -> list[Spent]:
    """Time of torch's operations themselves, without that of those inside of them, longest first, over all traces of the job."""
    seconds: dict[str, float] = defaultdict(float)
    calls: dict[str, int] = defaultdict(int)
    for path in sorted((folder / TRACES).glob("*.json.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        for name, own in _own_times(
            event
            for event in events
            if event.get("ph") == "X" and event.get("cat") in ("cpu_op", "kernel")
        ):
            seconds[name] += own / 1e6
            calls[name] += 1
    return sorted(
        (Spent(name, spent, calls[name]) for name, spent in seconds.items()),
        key=lambda each: -each.seconds,
    )


def tasks(folder: Path) -> list[Spent]:
    """Time of Ray's tasks and actor methods over the whole run, longest first; those that wait inside count as long as they wait."""
    path = folder / TRACES / "timeline.json"
    seconds: dict[str, float] = defaultdict(float)
    calls: dict[str, int] = defaultdict(int)
    for event in json.loads(path.read_text(encoding="utf-8")) if path.exists() else []:
        if event.get("ph") == "X" and str(event.get("cat", "")).startswith("task::"):
            name = event["cat"].removeprefix("task::")
            seconds[name] += event["dur"] / 1e6
            calls[name] += 1
    return sorted(
        (Spent(name, spent, calls[name]) for name, spent in seconds.items()),
        key=lambda each: -each.seconds,
    )


def _own_times(events: Iterable[dict[str, Any]]) -> Iterable[tuple[str, float]]:
    """Each event with its duration less that of its children on the same thread, in microseconds."""
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
