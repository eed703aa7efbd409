"""Compare problems by running them: the strongest evidence that two ask for the same.

In: pairs of a problem and a gated task, and an open sandbox. Out: for each pair, whether the
problem's solution passes the task's tests, whether the task's solution passes the problem's, and
whether the two programs agree on generated inputs. Names do not matter: the tested name is bound
to the other program's function.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from problems.cleaning.similarity import tests
from problems.schema import Problem
from problems.syntax import definitions
from problems.verification.strengthening import ReferenceAgreement, agree
from sandbox.protocol import Job, Limits, Verdict
from sandbox.sandbox import Sandbox

LIMITS = Limits.of_work(2.0, memory_mb=512)
MIN_TESTS = 2
METHOD = re.compile(r"^(\w+)\(\)\.(\w+)$")  # an entry point such as Solution().minSum
Pair = tuple[Problem, Problem]


@dataclass(frozen=True)
class Behaviour:
    """What running the programs of a pair showed; None where it could not be run.

    theirs: my solution under the task's tests; a failure is None where my solution is not known to
    be right, and `failed` is set, with `refuted` if it returns another value. mine: the task's
    solution under my tests. agreed: generated inputs on which the two programs agree. disagreement:
    one on which they differ.
    """

    theirs: Verdict | None = None
    mine: Verdict | None = None
    agreed: int = 0
    disagreement: str = ""
    failed: bool = False
    refuted: bool = False

    @property
    def same(self) -> bool:
        """Nothing that was run tells the two apart, and one program passes the other's tests."""
        passed = Verdict.AC in (self.theirs, self.mine)
        failed = {self.theirs, self.mine} - {None, Verdict.AC}
        return passed and not failed and not self.disagreement

    @property
    def different(self) -> bool:
        """A run tells the two apart."""
        return not self.same and bool({self.theirs, self.mine} - {None})

    def __str__(self) -> str:
        parts = []
        if self.theirs:
            parts.append(f"its solution under the task's tests: {self.theirs}")
        if self.mine:
            parts.append(f"the task's solution under its tests: {self.mine}")
        if self.agreed:
            parts.append(f"equal on {self.agreed} generated inputs")
        if self.disagreement:
            parts.append(f"different {self.disagreement}"[:200])
        return "; ".join(parts)


def compare(pairs: Sequence[Pair], sandbox: Sandbox) -> list[Behaviour]:
    """Return the behaviour of each pair of a problem and a gated task, in their order.

    The tests of a problem count if there are MIN_TESTS, and its own solution, if any, passes
    them. Raises NoOutput if the sandbox fails.
    """
    theirs = _verdicts(pairs, sandbox)
    tested = _reliable([problem for problem, _ in pairs], sandbox)
    # The other way round only where the first run leaves it open.
    open_pairs = [
        at
        for at, (problem, _) in enumerate(pairs)
        if theirs[at] in (None, Verdict.AC) and problem.problem_id in tested
    ]
    mine = dict(
        zip(open_pairs, _verdicts([pairs[at][::-1] for at in open_pairs], sandbox), strict=True)
    )
    equal = [
        at
        for at, verdict in enumerate(theirs)
        if verdict is Verdict.AC and mine.get(at) in (None, Verdict.AC)
    ]
    agreement = dict(zip(equal, _agree([pairs[at] for at in equal], sandbox), strict=True))
    return [
        Behaviour(
            verdict if verdict is Verdict.AC or problem.problem_id in tested else None,
            mine.get(at),
            len(agreement[at].tests) if at in agreement else 0,
            agreement[at].disagreement if at in agreement else "",
            failed=verdict not in (None, Verdict.AC),
            refuted=verdict is Verdict.WA,
        )
        for at, (verdict, (problem, _)) in enumerate(zip(theirs, pairs, strict=True))
    ]


def alike_everywhere(pairs: Sequence[Pair], sandbox: Sandbox) -> list[bool]:
    """Return whether no input tells the two programs apart, even one that the task's tests do not
    cover, such as a negative number: a copy of a program does the same everywhere. Each pair has
    the `same` behaviour. Raises NoOutput if the sandbox fails.
    """
    return [not each.disagreement for each in _agree(pairs, sandbox, wide=True)]


def _agree(pairs: Sequence[Pair], sandbox: Sandbox, wide: bool = False) -> list[ReferenceAgreement]:
    """Run both programs of each pair on inputs like those of the task's tests."""
    return agree(
        [task for _, task in pairs],
        [(task.solutions[0], program_for(problem, task) or "") for problem, task in pairs],
        sandbox,
        wide=wide,
    )


def _reliable(problems: Sequence[Problem], sandbox: Sandbox) -> set[str]:
    """Return the ids of problems whose tests say something."""
    unique = [
        problem
        for problem in {problem.problem_id: problem for problem in problems}.values()
        if len(tests(problem)) >= MIN_TESTS
    ]
    verdicts = _verdicts([(problem, problem) for problem in unique], sandbox)
    return {
        problem.problem_id
        for problem, verdict in zip(unique, verdicts, strict=True)
        if verdict is Verdict.AC or not problem.solutions
    }


def program_for(solver: Problem, tested: Problem) -> str | None:
    """Return the solver's first solution as a program that the tests of the other can call.

    None if there is no solution, or if the two are not called in the same way.
    """
    if not solver.solutions or not tested.tests:
        return None
    source = solver.solutions[0]
    if not (solver.kind.has_entry_point and tested.kind.has_entry_point):
        return source if solver.style == tested.style else None
    name, tested_name = called(solver), called(tested)
    if name is None or tested_name is None:
        return None
    if name == tested_name:
        return source
    if method := METHOD.match(tested_name):
        return (
            f"{source}\n\n\n_solve = {name}\n\n\nclass {method[1]}:\n"
            f"    def {method[2]}(self, *args, **kwargs):\n        return _solve(*args, **kwargs)\n"
        )
    if tested_name in definitions(source):  # its own functions must go on calling each other
        return (
            f"_space = {{'__name__': 'solution'}}\nexec({source!r}, _space)\n"
            f"{tested_name} = _space[{name!r}]\n"
        )
    return f"{source}\n\n\n{tested_name} = {name}\n"


def called(problem: Problem) -> str | None:
    """Return the name that tests call: the entry point, else the last function that none of the
    program's others calls.
    """
    name = problem.entry_point
    if (name and METHOD.match(name)) or not problem.solutions:
        return name
    functions = definitions(problem.solutions[0])
    if name in functions or not functions:
        return name
    helpers = {
        inner.id
        for function in functions.values()
        for inner in ast.walk(function)
        if isinstance(inner, ast.Name) and inner.id != function.name
    }
    return next((one for one in reversed(functions) if one not in helpers), [*functions][-1])


def arity(problem: Problem) -> tuple[int, int] | None:
    """Return the least and the greatest number of arguments that the first solution takes.

    None if it is not one function with positional arguments alone.
    """
    if not problem.solutions:
        return None
    function = definitions(problem.solutions[0]).get(called(problem) or "")
    if not isinstance(function, ast.FunctionDef) or function.args.vararg:
        return None
    count = len(function.args.args)
    return count - len(function.args.defaults), count


def _verdicts(pairs: Sequence[Pair], sandbox: Sandbox) -> list[Verdict | None]:
    """Run the first problem's solution under the second's tests; None where nothing was judged."""
    jobs = list[Job]()
    for at, (solver, tested) in enumerate(pairs):
        if (source := program_for(solver, tested)) is not None:
            jobs.append(replace(tested.job(source, str(at)), limits=LIMITS))
    verdicts = {report.job_id: report.verdict for report in sandbox.run(jobs)}
    return [
        None if (verdict := verdicts.get(str(at))) is Verdict.INFRA else verdict
        for at in range(len(pairs))
    ]
