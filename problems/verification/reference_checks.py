"""Run the solutions of a batch of problems; without solutions, a model's samples."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from problems.reading.imported_packages import imported
from problems.schema import Problem
from problems.verification.journal import ABSENT
from problems.verification.json_keys import hint
from problems.verification.problem_check import (
    BROKEN_TESTS,
    DISAGREE,
    FLICKERS,
    TOO_WEAK,
    UNSOLVED,
    ProblemCheck,
    composed,
    idle_answer,
    judges,
    references,
)
from problems.verification.repeats import repeat_solutions
from problems.verification.solver import agreements
from sandbox.protocol import Report, Verdict
from sandbox.sandbox import Runs

MAJORITY = 2  # different solutions that must pass before others are dropped


def solve(checks: Sequence[ProblemCheck], sandbox: Runs, agreeing: int) -> None:
    """Take samples that pass the tests as references, if at least `agreeing` different ones do."""
    for check, agreement in zip(
        checks, agreements([check.problem for check in checks], sandbox), strict=True
    ):
        samples = check.problem.samples
        if agreement.failed:
            _record_failure(check, agreement.failed)
        elif len(agreement.different) < agreeing:
            check.fault = (
                UNSOLVED,
                f"{len(agreement.different)} different of {len(samples)} samples pass its tests, "
                f"{agreeing} are needed{hint(check.problem)}",
            )
        else:
            check.solved, check.agreement = agreement.references, agreement.share
            check.problem = replace(
                check.problem, solutions=tuple(samples[at] for at in agreement.references)
            )


def _record_failure(check: ProblemCheck, failed: Report) -> None:
    """Record a report without a verdict: a fault of the problem, or of the sandbox."""
    if failed.unusable:
        reason = ABSENT + ", ".join(failed.absent) if failed.absent else BROKEN_TESTS
        check.fault = reason, failed.detail
    else:
        check.undecided = failed.detail


def check_references(checks: Sequence[ProblemCheck], sandbox: Runs, repeats: int) -> None:
    """Run every solution, and an idle program if the tests judge completions."""
    judged = list[ProblemCheck]()
    jobs = (  # generated lazily, as the sandbox asks for them
        check.problem.job(source, f"{at}/{which}")
        for at, check in enumerate(checks)
        for which, source in enumerate(
            [
                *check.problem.solutions,
                *([idle_answer(check.problem)] if judges(check.problem) else []),
            ]
        )
    )
    reports = {report.job_id: report for report in sandbox.run(jobs)} if checks else {}
    for at, check in enumerate(checks):
        check.own = [reports[f"{at}/{which}"] for which in range(len(check.problem.solutions))]
        everyone = [
            *check.own,
            *([reports[f"{at}/{len(check.own)}"]] if judges(check.problem) else []),
        ]
        if failed := next((report for report in everyone if report.verdict is Verdict.INFRA), None):
            _record_failure(check, failed)
            continue
        if judges(check.problem) and everyone[-1].verdict is Verdict.AC:
            check.fault = TOO_WEAK, "they pass an answer that does nothing"
        judged.append(check)
    repeated = repeat_solutions(
        [check.problem for check in judged],
        [check.own for check in judged],
        sandbox,
        [1 if composed(check.problem) else repeats for check in judged],
    )
    for check, check.own in zip(judged, repeated, strict=True):
        _drop_wrong_solutions(check)
        check.fault = _fault(check.problem, check.own) or check.fault


def _drop_wrong_solutions(check: ProblemCheck) -> None:
    """Drop solutions that fail, if at least two different ones pass, and no more fail with another
    answer: then the tests are right.

    Where a verdict flickers, nothing is dropped, because the tests may be the cause.
    """
    if any(report.flickers for report in check.own):
        return
    right = [which for which, report in enumerate(check.own) if report.verdict is Verdict.AC]
    other = [which for which, report in enumerate(check.own) if report.verdict is Verdict.WA]
    votes, against = (len(references(_with_solutions(check.problem, at))) for at in (right, other))
    if len(right) < len(check.own) and votes >= max(MAJORITY, against):
        check.dropped = tuple(which for which in range(len(check.own)) if which not in right)
        check.problem = _with_solutions(check.problem, right)
        check.own = [check.own[which] for which in right]


def _with_solutions(problem: Problem, positions: Sequence[int]) -> Problem:
    return replace(problem, solutions=tuple(problem.solutions[which] for which in positions))


def _fault(problem: Problem, own: Sequence[Report]) -> tuple[str, str] | None:
    """Return reason and detail if the reports on its solutions show a fault, else None."""
    passes = any(report.verdict is Verdict.AC for report in own)
    for which, report in enumerate(own, 1):
        if report.flickers:
            return (
                FLICKERS,
                (
                    f"solution {which} of {len(own)}: {_counts(report.verdicts)} in "
                    f"{len(report.verdicts)} runs with other seeds; "
                    f"{_first_failure(report)}"
                ),
            )
        if absent := _absent(problem.solutions[which - 1], report):
            return ABSENT + absent, f"solution {which} of {len(own)} imports {absent}"
        if report.verdict is not Verdict.AC:
            differs = report.verdict is Verdict.WA and passes
            return (
                DISAGREE if differs else f"a solution fails its tests ({report.verdict})",
                f"solution {which} of {len(own)}: {_first_failure(report)}{hint(problem)}",
            )
    return None


def _absent(solution: str, report: Report) -> str:
    """Return the package that a solution imports and lacks, though others do without it; or ""."""
    missing = re.search(r"No module named '(\w+)", _first_failure(report))
    return missing[1] if missing and missing[1] in imported(solution) else ""


def _counts(verdicts: Sequence[Verdict]) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in Counter(verdicts).items())


def _first_failure(report: Report) -> str:
    number, test = next(
        ((i, test) for i, test in enumerate(report.tests, 1) if test.verdict is not Verdict.AC),
        (0, None),
    )
    words = (
        f"test {number} of {report.total}: {test.verdict} {test.detail}" if test else report.detail
    )
    return " ".join(words.split())[:300]
