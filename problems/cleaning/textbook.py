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
from sandbox.protocol import Job, Verdict
from sandbox.sandbox import Sandbox

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
    taken = [(task, arity(task)) for task in tasks if task.style == "assert" and task.tests]
    jobs, owners = list[Job](), dict[str, tuple[Problem, list[Problem]]]()
    for function in textbook():
        alike = [task for task, count in taken if count == arity(function)]
        if tests := tuple(test for task in alike for test in task.tests):
            job = replace(function, tests=tests).job(function.solutions[0], function.problem_id)
            jobs.append(replace(job, limits=LIMITS))
            owners[job.job_id] = function, [task for task in alike for _ in task.tests]
    pairs = list[tuple[Problem, Problem]]()
    for report in sandbox.run(jobs):
        function, tested = owners[report.job_id]
        tasks_of = {task.problem_id: task for task in tested}
        for task, test in zip(tested, report.tests, strict=True):
            if test.verdict is not Verdict.AC:
                tasks_of.pop(task.problem_id, None)
        pairs += [(function, task) for task in tasks_of.values()]
    return {
        task.problem_id: function.statement
        for (function, task), behaviour in zip(pairs, compare(pairs, sandbox), strict=True)
        if behaviour.same
    }
