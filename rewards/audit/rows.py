"""Audit rows: problems with tests in one of the sandbox's styles."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from problems.cleaning.fingerprints import known_task
from problems.cleaning.gating import gated_as
from problems.schema import Problem
from problems.verification.journal import ABSENT
from problems.verification.plain_cases import CONTRADICTION, TABLE
from problems.verification.problem_check import (
    ANY_ANSWER,
    BROKEN_TESTS,
    DISAGREE,
    FLICKERS,
    TOO_WEAK,
    ProblemCheck,
)
from problems.verification.settings import Verification
from problems.verification.verification_batch import check_batch
from rewards.audit.attempts import right_programs, wrong_programs
from rewards.audit.findings import (
    KNOWN,
    LEAK,
    NOTHING,
    OTHERS,
    REPEATS,
    SOLUTION,
    WRONG,
    AuditedTask,
    Finding,
    audited,
)
from rewards.audit.leaks import row_leak
from sandbox.protocol import Job, Report, Verdict
from sandbox.sandbox import Runs

BATCH = 16  # problems
CHECKED = (SOLUTION, NOTHING, WRONG, REPEATS, LEAK, OTHERS, KNOWN)
NO_SOLUTION = "no reference solution"
# The check that a reason of verification belongs to.
CHECK_OF = {
    BROKEN_TESTS: SOLUTION, CONTRADICTION: SOLUTION, TABLE: SOLUTION, FLICKERS: REPEATS,
    TOO_WEAK: NOTHING, DISAGREE: OTHERS, ANY_ANSWER: OTHERS,
}  # fmt: skip


def audit_rows(
    problems: Sequence[Problem], sandbox: Runs, settings: Verification | None = None
) -> Iterator[AuditedTask]:
    """Yield the findings on each problem, in their order.

    Raises NoVerdict if the sandbox failed on generated inputs.
    """
    rules = settings or Verification()
    for start in range(0, len(problems), BATCH):
        batch = [replace(each, split="train") for each in problems[start : start + BATCH]]
        started = time.monotonic()
        # A benchmark's tasks are checked as strictly as any others.
        ungated = [replace(each, gated=False) for each in batch]
        checks = check_batch(ungated, sandbox, rules.repeats, rules.mutants, rules.agreement)
        tried = _tried(checks, sandbox)
        seconds = (time.monotonic() - started) / len(batch)
        for at, (problem, check) in enumerate(zip(batch, checks, strict=True)):
            findings = [
                *_static(problem),
                *_verified(check, rules.threshold),
                *_outcomes(check, [each for each in tried if each[0] == at]),
            ]
            rest = "the tests or the solution cannot be used as they are"
            yield audited(problem.problem_id, "rows", findings, seconds, CHECKED, rest)


def _static(problem: Problem) -> Iterator[Finding]:
    leak = row_leak(problem)
    yield Finding(LEAK, "fail" if leak else "pass", leak)
    if task := gated_as(problem):
        yield Finding(KNOWN, "fail", task)
    elif match := known_task(problem):
        yield Finding(KNOWN, "fail", f"{match.task}: {match.kind} {match.detail}".strip())
    else:
        yield Finding(KNOWN, "pass")


def _verified(check: ProblemCheck, threshold: float) -> Iterator[Finding]:
    """Yield what verification found; nothing on a check that it did not reach."""
    reason, detail = check.fault or ("", "")
    if check.undecided:
        yield Finding(SOLUTION, "error", check.undecided)
        return
    if reason.startswith(ABSENT) or reason in (NO_SOLUTION, ANY_ANSWER):
        yield Finding(SOLUTION, "skip", f"{reason} {detail}".strip())
    if reason and reason != NO_SOLUTION and not reason.startswith(ABSENT):
        yield Finding(CHECK_OF.get(reason, SOLUTION), "fail", f"{reason}: {detail}")
    killed = check.decided - len(check.survivors)
    if check.decided and killed < threshold * check.decided:
        names = "; ".join(mutant.name for mutant in check.survivors)[:300]
        detail = f"{len(check.survivors)} of {check.decided} broken solutions pass: {names}"
        yield Finding(WRONG, "fail", detail)
    if check.own and all(report.verdict is Verdict.AC for report in check.own):
        yield Finding(SOLUTION, "pass", f"{len(check.own)} solutions")
        if not check.fault:
            yield Finding(NOTHING, "pass")
            runs = max(len(report.verdicts) or 1 for report in check.own)
            yield Finding(REPEATS, "pass", f"{runs} runs")


_Tried = tuple[int, bool, str, Report]  # problem, whether it is wrong, name, report


def _tried(checks: Sequence[ProblemCheck], sandbox: Runs) -> list[_Tried]:
    """Run the wrong programs of each problem, and the other right ones where a solution passes."""
    listed: list[tuple[int, bool, str]] = []

    def jobs() -> Iterator[Job]:
        for at, check in enumerate(checks):
            problem = check.problem
            if check.undecided or (check.fault and check.fault[0] in (BROKEN_TESTS,)):
                continue
            passes = any(report.verdict is Verdict.AC for report in check.own)
            others = list(right_programs(problem)) if passes else []
            limits = problem.limits
            short = replace(limits, cpu_s=min(limits.cpu_s, 2.0), wall_s=min(limits.wall_s, 4.0))
            for wrong, programs in ((True, wrong_programs(problem)), (False, others)):
                for name, source in programs:
                    listed.append((at, wrong, name))
                    job = problem.job(source, str(len(listed) - 1))
                    yield replace(job, limits=short) if wrong else job

    reports = {report.job_id: report for report in sandbox.run(jobs())}
    return [(*each, reports[str(number)]) for number, each in enumerate(listed)]


def _outcomes(check: ProblemCheck, tried: Sequence[_Tried]) -> Iterator[Finding]:
    for _, wrong, name, report in tried:
        passed = report.verdict is Verdict.AC
        if wrong and passed:
            yield Finding(WRONG, "fail", f"a wrong program passes: {name}")
        if not wrong and not passed and report.verdict is not Verdict.INFRA:
            yield Finding(OTHERS, "fail", f"refused ({report.verdict}): {name}")
    wrong_ones = [each for each in tried if each[1] and each[3].verdict is not Verdict.INFRA]
    if wrong_ones:
        yield Finding(WRONG, "pass", f"{len(wrong_ones)} programs and {check.decided} mutants")
    if others := [each for each in tried if not each[1]]:
        yield Finding(OTHERS, "pass", f"{len(others)} programs")
