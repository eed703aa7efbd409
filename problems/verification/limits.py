"""Limits learned from the references: what each solution took, in coarse steps and with room to spare.

In: problems, a sandbox. Out: `measured.json` beside a dataset, outside its content hash. A proposal changes nothing by itself. A person
chooses them (`ratchet data limits --apply` writes `limits.json` under RATCHET_HOME); the next version of the dataset is written with them
(`with_limits`), names the choice among its inputs, and its hash says so. CPU time is what is learned; the clock gets
LOAD times as much, and more only for references that wait. Steps are a factor of two or more apart and the room is fivefold and two seconds at least,
so that noise hardly ever proposes another step, and never one that the reference does not pass.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from problems.schema import Problem
from problems.verification.chosen_limits import Choice
from sandbox.protocol import LOAD, Limits, Report, Verdict
from sandbox.sandbox import Sandbox

MEASURED = "measured.json"  # hash_folder leaves it out
CEILING = Limits.of_work(60.0, memory_mb=2048)  # under which references are measured
SECONDS = (2.0, 5.0, 10.0, 20.0, 60.0)
MEGABYTES = (128, 256, 512, 1024, 2048)
ROOM, MEMORY_ROOM = 5.0, 2.0


@dataclass(frozen=True)
class Measured:
    """What a problem's references took: the slowest test, the largest peak, over all solutions and repeats."""

    problem_id: str
    wall_s: float
    cpu_s: float
    peak_mb: float
    accepted: bool  # every solution, every time
    flickers: bool
    proposed: (
        dict[str, float] | None
    )  # wall_s, cpu_s, memory_mb; None where a reference was refused: nothing can be learned from it


def measure(problems: Sequence[Problem], sandbox: Sandbox, repeat: int = 1) -> list[Measured]:
    """One row a problem, in their order. Raises RuntimeError, naming the problem, where the sandbox has no verdict."""
    jobs = [
        replace(
            problem.job(solution, f"{at}"),
            limits=replace(CEILING, output_kb=problem.limits.output_kb),
        )
        for at, problem in enumerate(problems)
        for solution in problem.solutions
    ]
    took = [(0.0, 0.0, 0.0)] * len(problems)
    accepted, flickers = [bool(problem.solutions) for problem in problems], [False] * len(problems)
    for report in sandbox.run(jobs, repeat=repeat):
        at = int(report.job_id)
        if report.verdict is Verdict.INFRA:
            raise RuntimeError(
                f"{problems[at].problem_id}: no verdict ({report.detail}): run again"
            )
        took[at] = most([took[at], cost(report)])
        accepted[at] &= report.verdict is Verdict.AC
        flickers[at] |= report.flickers
    return [
        learned(problem.problem_id, *costs, accepted=ok, flickers=unsure)
        for problem, costs, ok, unsure in zip(problems, took, accepted, flickers, strict=True)
    ]


def cost(report: Report) -> tuple[float, float, float]:
    """Of one run: seconds of the slowest test by the clock, seconds of CPU (at most what that test took), mebibytes of the peak."""
    wall_s = max(test.wall_s for test in report.tests)
    cpu_s = report.cpu_s if len(report.tests) == 1 else min(report.cpu_s, wall_s)
    return round(wall_s, 4), round(cpu_s, 4), round(report.peak_bytes / 2**20, 1)


def most(costs: Iterable[tuple[float, float, float]]) -> tuple[float, float, float]:
    wall, cpu, peak = zip(*costs, strict=True)
    return max(wall), max(cpu), max(peak)


def learned(
    problem_id: str,
    wall_s: float,
    cpu_s: float,
    peak_mb: float,
    *,
    accepted: bool = True,
    flickers: bool = False,
) -> Measured:
    """What was measured, with the limits that follow from it."""
    sure = accepted and not flickers
    return Measured(
        problem_id,
        wall_s,
        cpu_s,
        peak_mb,
        accepted,
        flickers,
        propose(wall_s, cpu_s, peak_mb) if sure else None,
    )


def propose(wall_s: float, cpu_s: float, peak_mb: float) -> dict[str, float]:
    """The lowest step with enough room, else the highest. No memory limit where none was measured: the kernel does not always tell."""
    seconds = _step(SECONDS, ROOM * cpu_s)
    clock = max(LOAD * seconds, _step(SECONDS, ROOM * wall_s))
    return {"wall_s": clock, "cpu_s": seconds} | (
        {"memory_mb": _step(MEGABYTES, MEMORY_ROOM * peak_mb)} if peak_mb else {}
    )


def _step(steps: Sequence[float], wanted: float) -> float:
    return next((step for step in steps if step >= wanted), steps[-1])


def proposals(problems: Iterable[Problem], rows: Iterable[Measured]) -> Choice:
    """What would change, by the content hash of the problem as its source has it: one that changes meanwhile keeps its own limits.

    Gated problems keep theirs in any case: they are part of a benchmark's version.
    """
    proposed = {row.problem_id: row.proposed for row in rows if row.proposed}
    return {
        problem.content_hash: {"problem_id": problem.problem_id, **limits}
        for problem in problems
        if not problem.gated
        and (limits := proposed.get(problem.problem_id))
        and _limits(problem.limits, limits) != problem.limits
    }


def with_limits(problems: Iterable[Problem], choice: Choice) -> list[Problem]:
    """The problems of a new dataset version, each with the limits chosen for it; the others keep their own."""
    return (
        [
            replace(problem, limits=_limits(problem.limits, choice.get(problem.content_hash)))
            for problem in problems
        ]
        if choice
        else [*problems]
    )


def _limits(own: Limits, proposed: Mapping[str, Any] | None) -> Limits:
    if proposed is None:
        return own
    return replace(
        own,
        wall_s=proposed["wall_s"],
        cpu_s=proposed["cpu_s"],
        memory_mb=int(proposed.get("memory_mb", own.memory_mb)),
    )


def write(rows: Sequence[Measured], folder: Path) -> Path:
    """`measured.json` in a dataset's folder, a row a problem."""
    path = folder / MEASURED
    path.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")
    return path


def read(folder: Path) -> list[Measured]:
    """Older rows have no CPU time: the clock stands for it."""
    return [
        Measured(**{"cpu_s": row["wall_s"]} | row)
        for row in json.loads((folder / MEASURED).read_text(encoding="utf-8"))
    ]


def savings(problems: Sequence[Problem], rows: Sequence[Measured]) -> str:
    """A Markdown table: for how long programs that never end would hold a slot, one for each problem, by which limits; and who would not pass."""
    if not rows:
        return "nothing measured"
    kept = {problem.problem_id: problem.limits for problem in problems}
    uniform = Limits.of_work(_step(SECONDS, 1.5 * max(row.cpu_s for row in rows)))
    ways = {
        f"the default for all ({Limits().cpu_s:g} s of CPU)": [Limits() for _ in rows],
        f"one limit that every reference passes ({uniform.cpu_s:g} s)": [uniform for _ in rows],
        "as the dataset says": [kept[row.problem_id] for row in rows],
        "as proposed": [_limits(kept[row.problem_id], row.proposed) for row in rows],
    }
    lines = [
        "| limits | slot seconds, a program that loops for each | that waits for each | references too slow for them |",
        "|---|---|---|---|",
    ]
    for name, limits in ways.items():
        late = sum(
            row.accepted and (row.cpu_s > most.cpu_s or row.wall_s > most.wall_s)
            for row, most in zip(rows, limits, strict=True)
        )
        lines.append(
            f"| {name} | {sum(most.cpu_s for most in limits):,.0f} | {sum(most.wall_s for most in limits):,.0f} | {late} |"
        )
    return "\n".join(lines)
