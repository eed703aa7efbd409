"""Compare the cost of a program with that of the reference solutions.

In: the sandbox's report. Out: a value in [-1, 1], or None where nothing was measured.
The value depends on measured time, so two runs may differ: it has no weight wherever determinism is
claimed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import log
from statistics import fmean, quantiles

from pydantic import BaseModel, ConfigDict, Field

from problems.dataset.rl_parquet import COST
from problems.schema import Problem
from rewards.components.component import Component
from sandbox.protocol import Report, Verdict
from sandbox.sandbox import Sandbox, run_all

RUNS = 3  # of each reference, to measure its cost
WORST = 8.0  # times the references' upper quartile: a cost from which on the value is 0
# Below these, a measurement says more about the machine than about the program.
MIN_CPU_S, MIN_BYTES = 0.02, 16 * 2**20


class ReferenceCost(BaseModel):
    """Quartiles of the cost of accepted reference solutions: CPU seconds and peak bytes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cpu_s: tuple[float, float, float] = Field(min_length=3, max_length=3)
    peak_bytes: tuple[float, float, float] = Field(min_length=3, max_length=3)


def reference_cost(reports: Sequence[Report]) -> ReferenceCost:
    """Return the cost of the references from their reports.

    There are several runs of each where the references are few. Raises ValueError when none was
    accepted.
    """
    accepted = [report for report in reports if report.verdict is Verdict.AC]
    if not accepted:
        raise ValueError("no reference solution was accepted: its cost cannot be measured")
    return ReferenceCost(
        cpu_s=_quartiles([r.cpu_s for r in accepted]),
        peak_bytes=_quartiles([float(r.peak_bytes) for r in accepted]),
    )


def with_costs(sandbox: Sandbox, problems: Sequence[Problem]) -> list[Problem]:
    """Return the problems with the measured cost of their references in `extra`.

    A problem without an accepted reference stays as it is.
    """
    jobs = [
        (index, problem.job(source, f"{problem.problem_id}#{index}"))
        for index, problem in enumerate(problems)
        for source in problem.solutions * RUNS
    ]
    reports: list[list[Report]] = [[] for _ in problems]
    for (index, _), report in zip(jobs, run_all(sandbox, [job for _, job in jobs]), strict=True):
        if report.verdict is Verdict.AC:
            reports[index].append(report)
    return [
        replace(problem, extra=problem.extra | {COST: reference_cost(accepted).model_dump()})
        if accepted
        else problem
        for problem, accepted in zip(problems, reports, strict=True)
    ]


def efficiency(problem: Problem, report: Report) -> float | None:
    """Accepted: the mean of a value for time and one for memory. Not accepted: -1.

    Each value is 1 up to the references' median and 0 from WORST times their upper quartile on,
    with a logarithmic scale between. Where the sandbox did not measure memory, time alone counts.
    None when judging failed, or the problem's references were not measured.
    """
    if report.verdict is Verdict.INFRA or COST not in problem.extra:
        return None
    if report.verdict is not Verdict.AC:
        return -1.0
    cost = ReferenceCost.model_validate(problem.extra[COST])
    parts = [_against(report.cpu_s, cost.cpu_s, MIN_CPU_S)]
    # 0 where the kernel does not report it (docs/explanation/sandbox.md)
    if report.peak_bytes and cost.peak_bytes[1]:
        parts.append(_against(report.peak_bytes, cost.peak_bytes, MIN_BYTES))
    return fmean(parts)


def _against(cost: float, quartiles: tuple[float, float, float], least: float) -> float:
    best, worst = max(quartiles[1], least), WORST * max(quartiles[2], least)
    return min(1.0, max(0.0, log(worst / max(cost, least)) / log(worst / best)))


def _quartiles(values: list[float]) -> tuple[float, float, float]:
    low, middle, high = (
        quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    )
    return low, middle, high


COMPONENT = Component(
    "For accepted programs: CPU time and memory compared with the references. This is measured "
    "time: with a weight above 0, two runs may differ.",
    lambda program: efficiency(program.task, program.report),
    order=4,
    timed=True,
)
