"""Propose limits from the measured cost of the references, in coarse steps with a margin.

In: reports on solutions. Out: `measured.json` in a dataset's folder, outside its content hash. A
proposal alone changes nothing. A person accepts it (`ratchet data limits --apply` writes
`limits.json` under RATCHET_HOME). The next version of the dataset is then written with these limits
(`with_limits`) and names the choice among its inputs, so its hash changes.

CPU time is measured. The wall-clock limit is LOAD times the CPU limit, and more only for references
that wait. Steps are at least a factor of two apart, and the margin is fivefold, and at least two
seconds. So noise hardly ever changes the proposed step, and never to one that the reference fails.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from problems.schema import Problem
from problems.verification.chosen_limits import Choice
from sandbox.protocol import LOAD, Limits, Report

MEASURED = "measured.json"  # hash_folder leaves it out
SECONDS = (2.0, 5.0, 10.0, 20.0, 60.0)
MEGABYTES = (128, 256, 512, 1024, 2048)
MARGIN, MEMORY_MARGIN = 5.0, 2.0


@dataclass(frozen=True)
class Measured:
    """The cost of a problem's references, all of which pass, and the limits that follow from it.

    It is that of the slowest test and the largest peak, over all solutions and repeats.
    """

    problem_id: str
    wall_s: float
    cpu_s: float
    peak_mb: float
    proposed: dict[str, float]  # wall_s, cpu_s, memory_mb


def cost(report: Report) -> tuple[float, float, float]:
    """Return the cost of one run.

    This is the wall time of the slowest test in seconds, the CPU seconds (at most that test's wall
    time), and the peak in MiB.
    """
    wall_s = max(test.wall_s for test in report.tests)
    cpu_s = report.cpu_s if len(report.tests) == 1 else min(report.cpu_s, wall_s)
    return round(wall_s, 4), round(cpu_s, 4), round(report.peak_bytes / 2**20, 1)


def maximum_cost(costs: Iterable[tuple[float, float, float]]) -> tuple[float, float, float]:
    wall, cpu, peak = zip(*costs, strict=True)
    return max(wall), max(cpu), max(peak)


def measurement(problem_id: str, wall_s: float, cpu_s: float, peak_mb: float) -> Measured:
    """Return the measurement with the limits that follow from it."""
    return Measured(problem_id, wall_s, cpu_s, peak_mb, propose(wall_s, cpu_s, peak_mb))


def propose(wall_s: float, cpu_s: float, peak_mb: float) -> dict[str, float]:
    """Return the lowest step with enough margin, else the highest.

    There is no memory limit if no memory was measured: the kernel does not always report it.
    """
    seconds = _step(SECONDS, MARGIN * cpu_s)
    clock = max(LOAD * seconds, _step(SECONDS, MARGIN * wall_s))
    return {"wall_s": clock, "cpu_s": seconds} | (
        {"memory_mb": _step(MEGABYTES, MEMORY_MARGIN * peak_mb)} if peak_mb else {}
    )


def _step(steps: Sequence[float], minimum: float) -> float:
    return next((step for step in steps if step >= minimum), steps[-1])


def proposals(problems: Iterable[Problem], rows: Iterable[Measured]) -> Choice:
    """Return the limits that would change, by the content hash of the source's problem.

    A problem that changes in the meantime therefore keeps its own limits. Gated problems always
    keep theirs, because they are part of a benchmark's version.
    """
    return {
        problem.content_hash: {"problem_id": problem.problem_id, **limits}
        for problem, limits in _changes(problems, rows)
    }


def _changes(
    problems: Iterable[Problem], rows: Iterable[Measured]
) -> Iterator[tuple[Problem, dict[str, float]]]:
    """Yield each problem that would get other limits, and those."""
    proposed = {row.problem_id: row.proposed for row in rows}
    for problem in problems:
        limits = proposed.get(problem.problem_id)
        if limits and not problem.gated and _limits(problem.limits, limits) != problem.limits:
            yield problem, limits


def with_limits(problems: Iterable[Problem], choice: Choice) -> list[Problem]:
    """Return the problems of a new dataset version, each with the limits chosen for it, if any."""
    return (
        [
            replace(problem, limits=_limits(problem.limits, choice.get(problem.content_hash)))
            for problem in problems
        ]
        if choice
        else [*problems]
    )


def _limits(own: Limits, proposed: Mapping[str, Any] | None) -> Limits:
    """Return the problem's own limits, each lowered to the proposed one."""
    if proposed is None:
        return own
    return replace(
        own,
        wall_s=min(own.wall_s, proposed["wall_s"]),
        cpu_s=min(own.cpu_s, proposed["cpu_s"]),
        memory_mb=min(own.memory_mb, int(proposed.get("memory_mb", own.memory_mb))),
    )


def write(rows: Sequence[Measured], folder: Path) -> Path:
    """Write `measured.json` to a dataset's folder, one row per problem."""
    path = folder / MEASURED
    path.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")
    return path


def read(folder: Path) -> list[Measured]:
    """Read the measurements."""
    rows = json.loads((folder / MEASURED).read_text(encoding="utf-8"))
    return [Measured(**row) for row in rows]


def savings(problems: Iterable[Problem], rows: Sequence[Measured]) -> str:
    """Return a Markdown table that compares limits, and what the proposal saves.

    It shows how long non-terminating programs, one per problem, would occupy a slot under each set
    of limits, and how many references would fail.
    """
    if not rows:
        return "nothing measured"
    current_limits = {problem.problem_id: problem.limits for problem in problems}
    uniform = Limits.of_work(_step(SECONDS, 1.5 * max(row.cpu_s for row in rows)))
    options = {
        f"the default for all ({Limits().cpu_s:g} s of CPU)": [Limits() for _ in rows],
        f"one limit that every reference passes ({uniform.cpu_s:g} s)": [uniform for _ in rows],
        "as the dataset says": [current_limits[row.problem_id] for row in rows],
        "as proposed": [_limits(current_limits[row.problem_id], row.proposed) for row in rows],
    }
    lines = [
        (
            "| limits | slot seconds, a program that loops for each | that waits for each | "
            "references too slow for them |"
        ),
        "|---|---|---|---|",
    ]
    for name, limits in options.items():
        late = sum(
            row.cpu_s > limit.cpu_s or row.wall_s > limit.wall_s
            for row, limit in zip(rows, limits, strict=True)
        )
        lines.append(
            f"| {name} | {sum(limit.cpu_s for limit in limits):,.0f} | "
            f"{sum(limit.wall_s for limit in limits):,.0f} | {late} |"
        )
    *_, now, then = (sum(limit.cpu_s for limit in limits) for limits in options.values())
    saved = f"{now - then:,.0f} of {now:,.0f} slot seconds ({1 - then / now:.0%})"
    return "\n".join([*lines, "", f"The proposal saves {saved} of programs that loop."])
