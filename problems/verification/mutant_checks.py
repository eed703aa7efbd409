"""Run mutants of the solutions of a batch of problems, and generated inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from problems.verification.equivalence import different
from problems.verification.limits import MARGIN, propose
from problems.verification.mutants import SAMPLE, Mutant, mutants
from problems.verification.outputs import NoOutput
from problems.verification.problem_check import (
    DISAGREE,
    NoVerdict,
    ProblemCheck,
    composed,
    references,
)
from problems.verification.strengthening import WeakProblem, agree, strengthen
from sandbox.protocol import Job, Limits, Verdict
from sandbox.sandbox import Runs

MIN_MUTANTS, MUTANTS_S = 4, 20.0  # a slow solution has fewer mutants: they take that long
MIN_CPU_S = 0.5  # of a mutant's CPU limit


def check_mutants(checks: Sequence[ProblemCheck], sandbox: Runs, count: int) -> None:
    """Run mutants of the first solution, and a model's programs.

    Not counted are mutants without a verdict, and those that differ from the solution nowhere.
    """
    made: list[list[Mutant]] = []

    def jobs() -> Iterator[Job]:  # generated lazily: other jobs run while a mutant is made
        for at, check in enumerate(checks):
            made.append(_mutants(check, count))
            limits = _reduced_limits(check)
            yield from (
                replace(check.problem.job(mutant.source, f"{at}/{which}"), limits=limits)
                for which, mutant in enumerate(made[at])
            )

    verdicts = {report.job_id: report.verdict for report in sandbox.run(jobs())} if checks else {}
    for at, check in enumerate(checks if verdicts else ()):
        outcomes = [(mutant, verdicts[f"{at}/{which}"]) for which, mutant in enumerate(made[at])]
        check.decided = sum(verdict is not Verdict.INFRA for _, verdict in outcomes)
        check.survivors = [mutant for mutant, verdict in outcomes if verdict is Verdict.AC]
    alive = [check for check in checks if check.survivors and not composed(check.problem)]
    try:
        survivors = different(
            [replace(check.problem, limits=_reduced_limits(check)) for check in alive],
            [check.survivors for check in alive],
            sandbox,
        )
    except NoOutput as error:
        raise NoVerdict(str(error)) from error
    for check, remaining in zip(alive, survivors, strict=True):
        check.equivalent = len(check.survivors) - len(remaining)
        check.decided -= check.equivalent
        check.survivors = remaining


def _mutants(check: ProblemCheck, most: int) -> list[Mutant]:
    """Return at most `most` mutants, fewer for a slow solution, and the samples of a model.

    Samples (`extra["samples"]`) are realistic mistakes, or correct: verification tells which.
    """
    problem, least = check.problem, min(most, MIN_MUTANTS)
    affordable = least if composed(problem) else int(MUTANTS_S / max(check.own[0].wall_s, 0.01))
    return [
        *mutants(problem.solutions[0], max(least, min(most, affordable)), problem.entry_point),
        *(Mutant(text, SAMPLE, 0, f"{SAMPLE} {at}") for at, text in enumerate(problem.samples, 1)),
    ]


def check_generated_inputs(checks: Sequence[ProblemCheck], sandbox: Runs) -> None:
    """Run generated inputs.

    If the references disagree on an input, the problem is ambiguous. Where they agree, the inputs
    give new tests that reject survivors.
    """
    try:
        problems = [replace(check.problem, limits=_reduced_limits(check)) for check in checks]
        agreements = agree(problems, [references(problem) for problem in problems], sandbox)
    except NoOutput as error:
        raise NoVerdict(str(error)) from error
    for check, agreement in zip(checks, agreements, strict=True):
        if agreement.disagreement:
            check.fault = DISAGREE, agreement.disagreement[:300]
    weak = [
        (check, WeakProblem(problem, check.survivors, agreement.tests))
        for check, problem, agreement in zip(checks, problems, agreements, strict=True)
    ]
    weak = [
        (check, weak_problem)
        for check, weak_problem in weak
        if check.sound and weak_problem.survivors and weak_problem.candidates
    ]
    for (check, _), (added, survivors) in zip(
        weak, strengthen([weak_problem for _, weak_problem in weak], sandbox), strict=True
    ):
        check.added, check.survivors = added, survivors


def _reduced_limits(check: ProblemCheck) -> Limits:
    """Return the problem's limits, reduced to what its solutions need: some mutants never end."""
    own, proposed = check.problem.limits, propose(*check.cost)
    enough_s = max(MIN_CPU_S, MARGIN * check.cost[1])
    return replace(own, cpu_s=min(own.cpu_s, enough_s), wall_s=min(own.wall_s, proposed["wall_s"]))
