"""Add tests where a mutant survives: new inputs, with the output that all references agree on.

In: problems with at least two different solutions. Out: for each, the inputs on which the solutions
agree, or one on which they disagree (then the problem is ambiguous), and tests that reject
survivors. A single reference shows only what it does, not what is right, so its problem is never
strengthened.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from problems.schema import Problem
from problems.verification.inputs import Input, generated
from problems.verification.mutants import Mutant
from problems.verification.outputs import Output, Question, outputs
from sandbox.protocol import Job, Report, TestResult, Verdict
from sandbox.worker.compare import same_output, same_text
from sandbox.worker.messages import NOT_RUN

INPUTS = 24  # generated for each problem
NEAR = 1e-6  # floats that differ by less do not count as a disagreement
Test = dict[str, Any]


class Runs(Protocol):
    """A sandbox: one report per job, whatever the programs did."""

    def run(self, jobs: Sequence[Job], repeat: int = 1) -> Iterable[Report]: ...


@dataclass(frozen=True)
class Agreed:
    """The references' outputs for generated inputs.

    disagreement: an input, and two different outputs; empty if there is none.
    """

    tests: tuple[Test, ...] = ()
    disagreement: str = ""


def agreed(
    problems: Sequence[Problem], references: Sequence[Sequence[str]], sandbox: Runs
) -> list[Agreed]:
    """Return, for each problem, tests of what its different solutions agree on.

    An input on which any of them fails is left out, because it may not be valid. Raises NoOutput
    when the sandbox itself failed.
    """
    asked = [
        generated(problem, INPUTS) if len(sources) > 1 and _comparable(problem) else []
        for problem, sources in zip(problems, references, strict=True)
    ]
    questions = [
        Question(problem, source, given)
        for problem, sources, given in zip(problems, references, asked, strict=True)
        for source in (sources if given else ())
    ]
    answers = iter(outputs(questions, sandbox))
    found = []
    for problem, sources, given in zip(problems, references, asked, strict=True):
        said = [next(answers) for _ in sources] if given else []
        found.append(_agreed(problem, given, list(zip(*said, strict=True))))
    return found


def _comparable(problem: Problem) -> bool:
    return problem.style != "unittest" and problem.checker is None


def _agreed(problem: Problem, given: Sequence[Input], said: Sequence[Sequence[Output]]) -> Agreed:
    tests = []
    for asked, answers in zip(given, said, strict=True):
        if any(answer.fault for answer in answers):
            continue
        if strange := next(
            (answer for answer in answers if not _same(problem, answers[0], answer)), None
        ):
            return Agreed(
                (),
                " ".join(
                    f"on {asked} one says {answers[0].value!r}, another {strange.value!r}".split()
                ),
            )
        if test := _test(problem, asked, answers[0].value):
            tests.append(test)
    return Agreed(tuple(tests))


def _same(problem: Problem, one: Output, other: Output) -> bool:
    near = problem.tolerance or NEAR
    if problem.style == "stdio":
        return same_output(one.value.encode(), other.value.encode(), near, problem.compare)
    return same_text(one.same.encode(), other.same.encode(), near, problem.compare)


def _test(problem: Problem, asked: Input, value: Any) -> Test | None:
    """Return a test in the problem's style, or None.

    None if a correct output may differ in the last digit, or if the value cannot be written as a
    literal.
    """
    if problem.tolerance is None and _has_float(value):
        return None
    if problem.style == "stdio":
        return asked | {"stdout": value}
    if problem.style == "call":
        return asked | {"expected": value}
    words = [
        *map(repr, asked["args"]),
        *(f"{name}={value!r}" for name, value in asked["kwargs"].items()),
    ]
    text = repr(value)
    return (
        {"source": f"def check(candidate):\n    assert candidate({', '.join(words)}) == {text}\n"}
        if _is_literal(text, value)
        else None
    )


def _has_float(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_float, (*value.keys(), *value.values())))
    return isinstance(value, (float, complex)) or (
        isinstance(value, (list, tuple, set, frozenset)) and any(map(_has_float, value))
    )


def _is_literal(text: str, value: Any) -> bool:
    try:
        return bool(ast.literal_eval(text) == value)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return False


@dataclass(frozen=True)
class Weak:
    """A problem with surviving mutants, and tests that may reject them."""

    problem: Problem
    survivors: Sequence[Mutant]
    candidates: Sequence[Test]


def strengthen(weak: Sequence[Weak], sandbox: Runs) -> list[tuple[tuple[Test, ...], list[Mutant]]]:
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
        right = [
            nth
            for nth in range(len(one.candidates))
            if all(report.tests[nth].verdict is Verdict.AC for report in own)
        ]
        refuses = {
            nth: {who for who, report in enumerate(broken) if _refused(report.tests[nth])}
            for nth in right
        }
        picked = _cover(refuses)
        gone = set[int]().union(*(refuses[nth] for nth in picked))
        left = [mutant for who, mutant in enumerate(one.survivors) if who not in gone]
        chosen.append((tuple(one.candidates[nth] for nth in picked), left))
    return chosen


def _refused(result: TestResult) -> bool:
    return result.verdict not in (Verdict.AC, Verdict.INFRA) and result.detail != NOT_RUN


def _cover(refuses: dict[int, set[int]]) -> list[int]:
    """Greedily choose tests that together reject every survivor that any test rejects."""
    picked: list[int] = []
    left = set[int]().union(*refuses.values())
    while left:
        best = max(refuses, key=lambda nth: (len(refuses[nth] & left), -nth))
        picked.append(best)
        left -= refuses[best]
    return sorted(picked)
