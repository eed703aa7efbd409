"""Recognize mutants that act like the solution: no test can reject them, so none should be counted.

A mutant that passes the tests runs on generated inputs, and so does the problem's first solution.
Where both give the same output for every input, the mutant counts as equivalent. The inputs are
wide: a difference that only an unusual input shows is a difference. An input on which the solution
fails is left out, because it may not be valid. For samples of a model, so is an input on which less
than half of the accepted programs give the solution's output: it may break a precondition.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

from problems.schema import Problem
from problems.verification.inputs import generate_inputs
from problems.verification.mutants import SAMPLE, Mutant
from problems.verification.outputs import OutputRequest, outputs
from problems.verification.strengthening import comparable, same
from sandbox.sandbox import Runs

INPUTS = 48  # generated for each problem
MIN_INPUTS = 8  # valid inputs without which nothing is known, and every mutant counts


def different(
    problems: Sequence[Problem], survivors: Sequence[Sequence[Mutant]], sandbox: Runs
) -> list[list[Mutant]]:
    """Return, for each problem, the survivors that are not equivalent to its first solution.

    Raises NoOutput when the sandbox itself failed.
    """
    inputs = [
        generate_inputs(problem, INPUTS, wide=True) if mutants and comparable(problem) else []
        for problem, mutants in zip(problems, survivors, strict=True)
    ]
    requests = [
        OutputRequest(problem, source, problem_inputs)
        for problem, mutants, problem_inputs in zip(problems, survivors, inputs, strict=True)
        for source in [problem.solutions[0], *(mutant.source for mutant in mutants)]
        if problem_inputs
    ]
    results = iter(outputs(requests, sandbox))
    different_mutants = []
    for problem, mutants, problem_inputs in zip(problems, survivors, inputs, strict=True):
        rows = [next(results) for _ in [None, *mutants]] if problem_inputs else []
        valid = [at for at, output in enumerate(rows[0]) if not output.fault] if rows else []
        equal = [[same(problem, rows[0][at], row[at]) for at in valid] for row in rows[1:]]
        undisputed = _undisputed(
            [row for row, mutant in zip(equal, mutants, strict=False) if mutant.kind == SAMPLE]
        )
        different_mutants.append(
            [
                mutant
                for mutant, row in zip(mutants, equal, strict=True)
                if not all(compress(row, undisputed) if mutant.kind == SAMPLE else row)
            ]
            if len(valid) >= MIN_INPUTS
            else list(mutants)
        )
    return different_mutants


def _undisputed(samples: Sequence[Sequence[bool]]) -> list[bool]:
    """Return, for each input, whether half of the programs agree, the solution being one of them.

    samples: for each accepted sample, whether it gives the solution's output on the inputs.
    """
    return [2 * (1 + sum(equal)) >= 1 + len(samples) for equal in zip(*samples, strict=True)]
