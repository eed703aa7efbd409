"""Benchmarks whose tests are part of our problems: a completion is judged like any completion of
that problem.

In: problems. Out: a harness whose tasks have upstream's ids, or ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from evaluation.completions import Completion
from evaluation.judging.harness import Harness
from evaluation.judging.sanitize import sanitize
from problems.clusters import cluster_of
from problems.prompt import prompt_text, shown_test
from problems.reading.any_answer import any_answer
from problems.schema import Problem
from rewards.extraction import extract_code
from rewards.starter import with_starter
from sandbox.languages import PYTHON
from sandbox.protocol import Job, Limits

VERSION = "1"
REFERENCES = 3  # run per task


@dataclass(frozen=True)
class ProblemTask:
    task_id: str
    problem: Problem
    starter_code: str  # the code that a completion continues
    # The code that upstream puts before each completion, also before whole programs.
    ahead: str = ""

    @property
    def entry_point(self) -> str:
        return self.problem.entry_point or ""

    @property
    def prompt(self) -> str:
        return prompt_text(self.problem)

    @property
    def canonical(self) -> str:
        return next(iter(self.problem.solutions), "")

    @cached_property
    def content(self) -> str:
        return self.problem.content_hash


@dataclass(frozen=True)
class ProblemHarness(Harness):
    limits: Limits | None = None  # replaces the problems' own limits
    # Extracts the program from a model's completion, the name of its entry point and its language,
    # if not the usual way. Completions of a file are judged as they are.
    extract: Callable[[str, str, str], str] | None = None

    def extracted(self, task: ProblemTask, completion: Completion) -> Completion:
        """Return the program in a model's completion. A chat's follows the starter code: a whole
        function replaces the unfinished one, and the starter's imports and functions stay.
        """
        language = task.problem.language
        if self.extract:
            return replace(
                completion, text=self.extract(completion.text, task.entry_point, language)
            )
        if completion.whole:
            text = extract_code(completion.text, task.entry_point, language)
            completion = replace(completion, text=text)
        if not completion.whole or language != PYTHON:
            return completion
        text = with_starter(completion.text, task.starter_code, task.entry_point)
        return replace(completion, text=text)

    def program(self, task: ProblemTask, completion: Completion, sanitized: bool) -> str:
        if completion.whole and not completion.text:
            return ""
        text = (
            completion.text
            if completion.whole
            else f"{task.starter_code}{chr(10) * sanitized}{completion.text}"
        )
        return task.ahead + (sanitize(text, task.entry_point) if sanitized else text)

    def job(self, task: ProblemTask, which: str, program: str, job_id: str) -> Job:
        sandbox_job = task.problem.job(program, job_id)
        return replace(sandbox_job, limits=self.limits) if self.limits else sandbox_job

    def references(self, task: ProblemTask) -> Sequence[str]:
        return task.problem.solutions[:REFERENCES]

    def tags(self, task: ProblemTask) -> tuple[str, ...]:
        return task.problem.tags

    def cluster(self, task: ProblemTask) -> str:
        return cluster_of(task.problem)

    def several_answers(self, task: ProblemTask) -> str:
        sentence = any_answer(task.problem)
        return f"accepts any of several answers, and nothing checks them: {sentence}" * bool(
            sentence
        )

    def visible_test(self, task: ProblemTask, test: int) -> str:
        problem = task.problem
        return (
            shown_test(problem, problem.tests[test - 1])
            if 0 < test <= problem.visible_tests
            else ""
        )


Text = Callable[[Problem], str]


def tasks_of(
    problems: Iterable[Problem], named: Text, starter_code: Text, ahead: Text = lambda _: ""
) -> dict[str, ProblemTask]:
    return {
        named(problem): ProblemTask(named(problem), problem, starter_code(problem), ahead(problem))
        for problem in problems
    }


def by_problem(name: str, problems: Sequence[Problem]) -> ProblemHarness:
    """Return the harness of problems that no publication judges: their own ids, tests and limits,
    and one set of tests without a name.
    """
    tasks = tasks_of(problems, lambda problem: problem.problem_id, lambda problem: "")
    return ProblemHarness(name, VERSION, "", tasks, "", "", sets=("",))
