"""Verify problems without a reference by a solver: samples of a model that agree under the tests.

A problem is kept if enough different samples pass all its tests. The first of them serve as its
references from then on. The share of all samples that pass is the agreement. Samples that agree may
share a mistake, so such a problem is marked (`extra["verified_by"]`, `extra["agreement"]`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from problems.schema import Problem
from problems.syntax import normal_form
from sandbox.protocol import Report, Verdict
from sandbox.sandbox import Runs

MAX_REFERENCES = 3  # samples that serve as references: each is run several times


@dataclass(frozen=True)
class SampleAgreement:
    """The samples of a problem that pass its tests.

    share: of all samples. different: positions of those that differ in more than layout. failed:
    the report of a sample that could not be judged, else None.
    """

    share: float
    different: tuple[int, ...]
    failed: Report | None = None

    @property
    def references(self) -> tuple[int, ...]:
        return self.different[:MAX_REFERENCES]


def agreements(problems: Sequence[Problem], sandbox: Runs) -> list[SampleAgreement]:
    """Run every sample of every problem against its tests. Every problem has samples."""
    jobs = (  # generated lazily, as the sandbox asks for them
        problem.job(sample, f"{at}/{which}")
        for at, problem in enumerate(problems)
        for which, sample in enumerate(problem.samples)
    )
    reports = {report.job_id: report for report in sandbox.run(jobs)} if problems else {}
    return [
        _agreement(problem, [reports[f"{at}/{which}"] for which in range(len(problem.samples))])
        for at, problem in enumerate(problems)
    ]


def _agreement(problem: Problem, reports: Sequence[Report]) -> SampleAgreement:
    passing = [at for at, report in enumerate(reports) if report.verdict is Verdict.AC]
    first = {normal_form(problem.samples[at]): at for at in reversed(passing)}
    failed = next((report for report in reports if report.verdict is Verdict.INFRA), None)
    return SampleAgreement(len(passing) / len(reports), tuple(sorted(first.values())), failed)
