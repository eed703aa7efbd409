"""Add tests where a mutant survives: new inputs, with the output that all references agree on.

In: problems with at least two different solutions. Out: for each, the inputs on which the solutions
agree, or one on which they disagree (then the problem is ambiguous), and tests that reject
survivors. A single reference shows only what it does, not what is right, so its problem is never
strengthened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from problems.schema import Problem
from problems.verification.inputs import generate_inputs
from problems.verification.mutants import Mutant
from problems.verification.outputs import Output, OutputRequest, outputs
from sandbox.protocol import TestResult, Verdict
from sandbox.sandbox import Runs
from sandbox.styles.style import Input
from sandbox.worker.compare import same_output, same_text
from sandbox.worker.messages import NOT_RUN

INPUTS = 24  # generated for each problem
NEAR = 1e-6  # floats that differ by less do not count as a disagreement
Test = dict[str, Any]


@dataclass(frozen=True)
class ReferenceAgreement:
    """The references' outputs for generated inputs.

    disagreement: an input, and two different outputs; empty if there is none.
    """

    tests: tuple[Test, ...] = ()
    disagreement: str = ""


def agree(
    problems: Sequence[Problem],
    references: Sequence[Sequence[str]],
    sandbox: Runs,
    *,
    wide: bool = False,
) -> list[ReferenceAgreement]:
    """Return, for each problem, tests of what its different solutions agree on.

    An input on which any of them fails is left out, because it may not be valid. wide: see
    `generate_inputs`. Raises NoOutput when the sandbox itself failed.
    """
    inputs = [
        generate_inputs(replace(problem, solutions=tuple(sources)), INPUTS, wide=wide)
        if len(sources) > 1 and comparable(problem)
        else []
        for problem, sources in zip(problems, references, strict=True)
    ]
    requests = [
        OutputRequest(problem, source, problem_inputs)
        for problem, sources, problem_inputs in zip(problems, references, inputs, strict=True)
        for source in (sources if problem_inputs else ())
    ]
    results = iter(outputs(requests, sandbox))
    agreements = []
    for problem, sources, problem_inputs in zip(problems, references, inputs, strict=True):
        program_outputs = [next(results) for _ in sources] if problem_inputs else []
        agreements.append(
            _agreement(problem, problem_inputs, list(zip(*program_outputs, strict=True)))
        )
    return agreements


def comparable(problem: Problem) -> bool:
    """Return whether outputs of the problem's programs can be compared."""
    return not problem.kind.shared and problem.checker is None


def _agreement(
    problem: Problem, inputs: Sequence[Input], outputs_by_input: Sequence[Sequence[Output]]
) -> ReferenceAgreement:
    tests = []
    for test_input, row in zip(inputs, outputs_by_input, strict=True):
        if any(output.fault for output in row):
            continue
        if different := next((output for output in row if not same(problem, row[0], output)), None):
            first, other = row[0].value, different.value
            text = f"on {test_input} one says {first!r}, another {other!r}"
            return ReferenceAgreement((), " ".join(text.split()))
        if test := _test(problem, test_input, row[0].value):
            tests.append(test)
    return ReferenceAgreement(tuple(tests))


def same(problem: Problem, one: Output, other: Output) -> bool:
    """Return whether the problem's tests would accept both outputs or neither."""
    if one.fault or other.fault:
        return bool(one.fault) == bool(other.fault)
    near = problem.tolerance or NEAR
    if problem.kind.has_entry_point:
        return same_text(one.same.encode(), other.same.encode(), near, problem.compare)
    return same_output(one.value.encode(), other.value.encode(), near, problem.compare)


def _test(problem: Problem, test_input: Input, value: Any) -> Test | None:
    """Return a test in the problem's style, or None.

    None if a correct output may differ in the last digit, or if the value cannot be written as a
    literal.
    """
    if problem.tolerance is None and _has_float(value):
        return None
    return problem.kind.expecting(test_input, value)


def _has_float(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_float, (*value.keys(), *value.values())))
    return isinstance(value, (float, complex)) or (
        isinstance(value, (list, tuple, set, frozenset)) and any(map(_has_float, value))
    )


@dataclass(frozen=True)
class WeakProblem:
    """A problem with surviving mutants, and tests that may reject them."""

    problem: Problem
    survivors: Sequence[Mutant]
    candidates: Sequence[Test]


def strengthen(
    weak: Sequence[WeakProblem], sandbox: Runs
) -> list[tuple[tuple[Test, ...], list[Mutant]]]:
    """Choose, for each problem, a few candidate tests that together reject as much as all of them.

    Returns these and the remaining survivors. All solutions pass the chosen tests, in the problem's
    own style. A run without a verdict rejects nothing.
    """
    trials = [replace(one.problem, tests=tuple(one.candidates)) for one in weak]
    jobs = [
        trial.job(source, f"{at}/{which}")
        for at, (trial, one) in enumerate(zip(trials, weak, strict=True))
        for which, source in enumerate(
            [*trial.solutions, *(mutant.source for mutant in one.survivors)]
        )
    ]
    reports = {report.job_id: report for report in sandbox.run(jobs)} if jobs else {}
    chosen: list[tuple[tuple[Test, ...], list[Mutant]]] = []
    for at, one in enumerate(weak):
        rows = [
            reports[f"{at}/{which}"]
            for which in range(len(one.problem.solutions) + len(one.survivors))
        ]
        own, broken = rows[: len(one.problem.solutions)], rows[len(one.problem.solutions) :]
        valid = [
            nth
            for nth in range(len(one.candidates))
            if all(report.tests[nth].verdict is Verdict.AC for report in own)
        ]
        rejected_by = {
            nth: {
                survivor_index
                for survivor_index, report in enumerate(broken)
                if _refused(report.tests[nth])
            }
            for nth in valid
        }
        picked = _cover(rejected_by)
        rejected = set[int]().union(*(rejected_by[nth] for nth in picked))
        remaining = [
            mutant
            for survivor_index, mutant in enumerate(one.survivors)
            if survivor_index not in rejected
        ]
        chosen.append((tuple(one.candidates[nth] for nth in picked), remaining))
    return chosen


def _refused(result: TestResult) -> bool:
    return result.verdict not in (Verdict.AC, Verdict.INFRA) and result.detail != NOT_RUN


def _cover(rejected_by: dict[int, set[int]]) -> list[int]:
    """Greedily choose tests that together reject every survivor that any test rejects."""
    picked: list[int] = []
    remaining = set[int]().union(*rejected_by.values())
    while remaining:
        best = max(rejected_by, key=lambda nth: (len(rejected_by[nth] & remaining), -nth))
        picked.append(best)
        remaining -= rejected_by[best]
    return sorted(picked)
