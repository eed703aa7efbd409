"""Verify a batch of problems in the sandbox.

Runs the solutions, an idle program, mutants, and generated inputs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from problems.reading.stated import any_answer
from problems.schema import Problem
from problems.syntax import normal_form
from problems.verification.equivalence import different
from problems.verification.journal import ABSENT
from problems.verification.json_keys import hint
from problems.verification.limits import MARGIN, cost, maximum_cost, propose
from problems.verification.mutants import SAMPLE, Mutant
from problems.verification.mutants import mutants as mutants_of
from problems.verification.outputs import NoOutput
from problems.verification.plain_cases import plain_fault
from problems.verification.repeats import repeat_solutions
from problems.verification.solver import agreements
from problems.verification.strengthening import WeakProblem, agree, strengthen
from sandbox.protocol import Job, Limits, Report, Verdict
from sandbox.sandbox import Runs
from sandbox.wire import NotPlain, encode

BROKEN_TESTS = "its tests cannot be run"
FLICKERS = "verdict flickers"
TOO_WEAK = "tests too weak"
DISAGREE = "references disagree"
ANY_ANSWER = "any of several answers is right, and nothing checks them"
UNSOLVED = "samples do not agree"
MIN_MUTANTS, MUTANTS_S = 4, 20.0  # a slow solution has fewer mutants: they take that long
MIN_CPU_S = 0.5  # of a mutant's CPU limit
MAJORITY = 2  # different solutions that must pass before others are dropped


class NoVerdict(RuntimeError):
    """The sandbox failed, not the problems. Decided problems are in the journal, so run again."""


def judges(problem: Problem) -> bool:
    """Return whether the problem's tests ever judge a completion."""
    return problem.split != "demonstrations"


def references(problem: Problem) -> list[str]:
    """Return its solutions, without those that differ from another only in layout."""
    if len(problem.solutions) == 1:
        return [*problem.solutions]
    return list(
        {normal_form(solution): solution for solution in reversed(problem.solutions)}.values()
    )[::-1]


def composed(problem: Problem) -> bool:
    """Return whether the problem is composed of our own operations.

    One operation may undo another (sorted, then sorted again); then all its mutants are the same
    program.
    """
    return "composition" in problem.extra


def needs_strength(problem: Problem) -> bool:
    """Return whether weak tests exclude the problem.

    They exclude all problems for training or tuning, except compositions, where a surviving mutant
    says little.
    """
    return judges(problem) and not problem.gated and not composed(problem)


def idle_answer(problem: Problem) -> str:
    """Return a minimal program that returns None, or prints nothing.

    Tests that accept it decide nothing.
    """
    name, _, method = (problem.entry_point or "").partition("().")
    if method:
        return f"class {name}:\n    def {method}(*args, **kwargs):\n        return None\n"
    return f"def {name}(*args, **kwargs):\n    return None\n" if name else "pass\n"


@dataclass
class ProblemCheck:
    """The state of one problem of a batch; `fault` is (reason, detail) once something is wrong."""

    problem: Problem
    fault: tuple[str, str] | None
    own: list[Report] = field(default_factory=list)  # reports on its solutions
    dropped: tuple[int, ...] = ()  # positions of wrong solutions, which `problem` lacks
    # positions of the samples that became solutions of `problem`, and the share that passes
    solved: tuple[int, ...] = ()
    agreement: float | None = None
    undecided: str = ""  # why the sandbox has no verdict
    decided: int = 0  # number of mutants with a verdict, without equivalent ones
    equivalent: int = 0  # mutants that act like the first solution
    survivors: list[Mutant] = field(default_factory=list)
    added: tuple[dict[str, Any], ...] = ()  # tests that reject mutants which survived before

    @property
    def sound(self) -> bool:
        return not self.fault and not self.undecided

    @property
    def cost(self) -> tuple[float, float, float]:
        return maximum_cost(map(cost, self.own))


def check_batch(
    batch: Sequence[Problem], sandbox: Runs, repeats: int, mutants: int, agreeing: int
) -> list[ProblemCheck]:
    """Run all checks on a batch. Raises NoVerdict if the sandbox failed on generated inputs."""
    checks = [ProblemCheck(problem, _unfit(problem)) for problem in batch]
    unsolved = [check for check in checks if check.sound and not check.problem.solutions]
    _solve(unsolved, sandbox, agreeing)
    _check_references([check for check in checks if check.sound], sandbox, repeats)
    _check_mutants(
        [check for check in checks if check.sound and judges(check.problem)], sandbox, mutants
    )
    _check_generated_inputs(
        [check for check in checks if check.sound and needs_strength(check.problem)], sandbox
    )
    return checks


def _solve(checks: Sequence[ProblemCheck], sandbox: Runs, agreeing: int) -> None:
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


def _check_references(checks: Sequence[ProblemCheck], sandbox: Runs, repeats: int) -> None:
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


def _check_mutants(checks: Sequence[ProblemCheck], sandbox: Runs, count: int) -> None:
    """Run mutants of the first solution, and a model's programs.

    Not counted are mutants without a verdict, and those that differ from the solution nowhere.
    """
    mutants: list[list[Mutant]] = []

    def jobs() -> Iterator[Job]:  # generated lazily: other jobs run while a mutant is made
        for at, check in enumerate(checks):
            mutants.append(_mutants(check, count))
            limits = _reduced_limits(check)
            yield from (
                replace(check.problem.job(mutant.source, f"{at}/{which}"), limits=limits)
                for which, mutant in enumerate(mutants[at])
            )

    verdicts = {report.job_id: report.verdict for report in sandbox.run(jobs())} if checks else {}
    for at, check in enumerate(checks if verdicts else ()):
        outcomes = [(mutant, verdicts[f"{at}/{which}"]) for which, mutant in enumerate(mutants[at])]
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
        *mutants_of(problem.solutions[0], max(least, min(most, affordable)), problem.entry_point),
        *(Mutant(text, SAMPLE, 0, f"{SAMPLE} {at}") for at, text in enumerate(problem.samples, 1)),
    ]


def _check_generated_inputs(checks: Sequence[ProblemCheck], sandbox: Runs) -> None:
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
        if report.verdict is not Verdict.AC:
            differs = report.verdict is Verdict.WA and passes
            return (
                DISAGREE if differs else f"a solution fails its tests ({report.verdict})",
                f"solution {which} of {len(own)}: {_first_failure(report)}{hint(problem)}",
            )
    return None


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
