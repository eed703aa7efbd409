"""Find the tasks that ask for a function of every programming course.

In: gated tasks and an open sandbox. Out: those that a function of textbook.txt solves. Thousands of
people wrote "is a number prime?" without seeing a benchmark, so a program that does the same as
such a task is little evidence of a copy (semantic.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from problems.cleaning.behaviour import LIMITS, arity, compare
from problems.schema import Problem
from sandbox.protocol import Verdict
from sandbox.sandbox import Sandbox
from sandbox.worker.messages import NOT_RUN

FILE = Path(__file__).with_name("textbook.txt")


@cache
def textbook() -> tuple[Problem, ...]:
    """Return the functions of the file as problems without tests, each with one solution."""
    return tuple(
        Problem(
            f"textbook/{(name := head.split('(')[0])}",
            "textbook",
            name.replace("_", " "),
            "assert",
            (),
            name,
            solutions=(f"import functools\nimport math\n\n\ndef {head}:\n    return {value}\n",),
        )
        for line in FILE.read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
        for head, _, value in [line.partition(": ")]
    )


@cache
def textbook_names() -> frozenset[str]:
    return frozenset(function.entry_point or "" for function in textbook())


def common(tasks: Sequence[Problem], sandbox: Sandbox) -> dict[str, str]:
    """Return the id of each task that a function of the textbook solves, and the function's name.

    The function passes all tests of the task and equals its solution on generated inputs. Raises
    NoOutput if the sandbox fails.
    """
    style = textbook()[0].style
    taken = [(task, arity(task)) for task in tasks if task.style == style and task.tests]
    pairs = list[tuple[Problem, Problem]]()
    pending = {
        at: [task for task, count in taken if count == arity(function)]
        for at, function in enumerate(textbook())
    }
    while pending := {at: alike for at, alike in pending.items() if alike}:
        passed, pending = _round(pending, sandbox)
        pairs += passed
    return {
        task.problem_id: function.statement
        for (function, task), behaviour in zip(pairs, compare(pairs, sandbox), strict=True)
        if behaviour.same
    }


def _round(
    pending: dict[int, list[Problem]], sandbox: Sandbox
) -> tuple[list[tuple[Problem, Problem]], dict[int, list[Problem]]]:
    """Run each function on all its tasks at once.

    pending: the tasks by the function's place. Returns the pairs of a function and a task whose
    tests it passes, and the tasks after one on which it hung or died.
    """
    jobs = [
        replace(
            replace(textbook()[at], tests=tuple(test for task in alike for test in task.tests)).job(
                textbook()[at].solutions[0], str(at)
            ),
            limits=LIMITS,
        )
        for at, alike in pending.items()
    ]
    passed, rest = list[tuple[Problem, Problem]](), dict[int, list[Problem]]()
    for report in sandbox.run(jobs):
        at, results = int(report.job_id), iter(report.tests)
        for nth, task in enumerate(pending[at]):
            verdicts = [next(results) for _ in task.tests]
            if all(test.verdict is Verdict.AC for test in verdicts):
                passed.append((textbook()[at], task))
            elif nth and verdicts[0].detail == NOT_RUN:
                rest[at] = pending[at][nth:]
                break
    return passed, rest
