"""Verify a batch of problems in the sandbox.

Runs the solutions, an idle program, mutants, and generated inputs.
"""

from __future__ import annotations

from collections.abc import Sequence

from problems.reading.any_answer import any_answer
from problems.schema import Problem
from problems.verification.mutant_checks import check_generated_inputs, check_mutants
from problems.verification.plain_cases import plain_fault
from problems.verification.problem_check import (
    ANY_ANSWER,
    BROKEN_TESTS,
    ProblemCheck,
    judges,
    needs_strength,
)
from problems.verification.reference_checks import check_references, solve
from sandbox.sandbox import Runs
from sandbox.wire import NotPlain, encode


def check_batch(
    batch: Sequence[Problem], sandbox: Runs, repeats: int, mutants: int, agreeing: int
) -> list[ProblemCheck]:
    """Run all checks on a batch. Raises NoVerdict if the sandbox failed on generated inputs."""
    checks = [ProblemCheck(problem, _unfit(problem)) for problem in batch]
    unsolved = [check for check in checks if check.sound and not check.problem.solutions]
    solve(unsolved, sandbox, agreeing)
    check_references([check for check in checks if check.sound], sandbox, repeats)
    check_mutants(
        [check for check in checks if check.sound and judges(check.problem)], sandbox, mutants
    )
    check_generated_inputs(
        [check for check in checks if check.sound and needs_strength(check.problem)], sandbox
    )
    return checks


def _unfit(problem: Problem) -> tuple[str, str] | None:
    """Return reason and detail if the problem cannot even be run, else None."""
    if not problem.solutions and not (problem.samples and judges(problem)):
        return "no reference solution", "nothing shows that its tests can be passed"
    try:
        for test in problem.tests:
            encode(test)
    except NotPlain as error:
        return BROKEN_TESTS, str(error)
    if judges(problem) and (sentence := any_answer(problem)):
        return ANY_ANSWER, sentence[:300]
    return plain_fault(problem) if needs_strength(problem) else None
