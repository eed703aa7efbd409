"""How a benchmark judges a completion: the program, its sandbox job, and the verdict of a report.

In: a benchmark's tasks. Out: a `Harness`; evaluation/judging/judge.py uses it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from artifacts.code_hash import hash_modules
from evaluation.completions import Completion, Prefer
from evaluation.judging.failure_kinds import ProgramFault, fault
from evaluation.sampling import Progress
from rewards.extraction import extract_code
from sandbox.protocol import Job, Report

UNMEASURED = "UNMEASURED"  # the task needs a package that is not here, or its tests cannot be run
NEEDS = "needs "  # followed by the packages that are not here


class Task(Protocol):
    @property
    def task_id(self) -> str: ...
    @property
    def entry_point(self) -> str: ...
    @property
    def prompt(self) -> str:
        """The prompt, as published."""

    @property
    def canonical(self) -> str:
        """The canonical solution; "" if none is published."""

    @property
    def content(self) -> str:
        """Hash of everything that decides a verdict."""


@dataclass(frozen=True)
class Harness(ABC):
    """One benchmark as its own harness judges it. `tasks` by upstream's id; `sets`: test sets that
    a program runs one after another while it passes.
    """

    name: str
    version: str  # scores of two versions are not compared
    upstream: str  # the harness it agrees with, and its version
    tasks: Mapping[str, Any]
    release: str  # release of the data
    source: str  # name of the tasks' source in problems/sources
    sets: tuple[str, ...] = ("base",)
    prefer: Prefer = "solution"
    packages: tuple[str, ...] = ("numpy",)  # packages that programs may import
    # Tasks that are left out, with the reason: evaluation/judging/references.py fills it.
    unfit: dict[str, str] = field(default_factory=dict, compare=False, kw_only=True)

    @property
    def code_hash(self) -> str:
        """Hash of the code that judges: a part of every key of a cached result."""
        modules = (type(self).__module__, "evaluation.judging.judge")
        return hash_modules(modules, ("evaluation", "problems", "sandbox"))

    @abstractmethod
    def program(self, task: Any, completion: Completion, sanitized: bool) -> str:
        """Return the program to run for a completion."""

    @abstractmethod
    def job(self, task: Any, which: str, program: str, job_id: str) -> Job:
        """Return the sandbox's job for one program and one set of tests."""

    def named(self, completion: Completion) -> Completion:
        """Return the completion under its task's id here, which may be upstream's (`key`) or ours
        (`source/key`).
        """
        return replace(completion, task_id=self.known_id(completion.task_id))

    def known_id(self, task_id: str) -> str:
        """Return the task's id here; an unknown one is returned unchanged."""
        known = (task_id, task_id.partition("/")[2], f"{self.name}/{task_id}")
        return next((name for name in known if name in self.tasks), task_id)

    def extracted(self, task: Any, completion: Completion) -> Completion:
        """Return the part of a model's completion that is judged: of a chat the program, of a base
        model everything.
        """
        return (
            replace(completion, text=extract_code(completion.text, task.entry_point))
            if completion.whole
            else completion
        )

    def prepare(  # noqa: B027  # most need nothing
        self, tasks: Sequence[Any], sandbox: Any, on_progress: Progress
    ) -> None:
        """Compute the data that jobs of these tasks need, such as expected results."""

    def verdict(self, report: Report) -> tuple[str, str]:
        """Return a report's verdict, and its reason in words."""
        if report.absent:
            return UNMEASURED, f"{NEEDS}{', '.join(report.absent)}"
        return UNMEASURED if report.unusable else report.verdict.value, report.detail

    def fault(self, report: Report) -> ProgramFault:
        """Return where the program failed, if known."""
        return fault(report)

    def visible_test(self, task: Any, test: int) -> str:
        """Return the text of a test (numbered from 1) that the statement shows.

        Return "" for others: hidden tests stay hidden.
        """
        return ""

    def tags(self, task: Any) -> tuple[str, ...]:
        """Return the task's tags, by which scores are split."""
        return ()

    def cluster(self, task: Any) -> str:
        """Return the name that related tasks share; "" if the task is independent."""
        return ""

    def references(self, task: Any) -> Sequence[str]:
        """Return programs that must pass the task's tests; none if none is to be run."""
        return [task.canonical] if task.canonical else []

    def several_answers(self, task: Any) -> str:
        """Return why the task's tests refuse right answers; "" if nothing shows that they do."""
        return ""

    def absent(self, task: Any) -> str:
        """Return why a task cannot be measured; "" if it can."""
        return self.unfit.get(task.task_id, "")
