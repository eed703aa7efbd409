"""BigCodeBench as bigcodebench 0.2.5 judges it: after the task's imports and a stub ("calibrated"),
all unittest methods in the program's own process. A program can forge their result, so the trust
level of these verdicts is "shared".

Different from upstream: a task whose packages are missing is not measured; upstream fails it.
Programs import packages from the benchmark's own folder if it is installed, and else only numpy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

from evaluation.completions import Completion
from evaluation.judging.by_problem import ProblemTask
from evaluation.judging.harness import Harness
from evaluation.judging.sanitize import sanitize
from problems.reading.source import Row, text
from problems.sources.bigcodebench import convert
from sandbox.protocol import Job

VERSION = "2"
NAMES = "import os, sys\nfrom os import environ\n"  # that upstream's module defines
# For a test method that uses pandas, matplotlib or sklearn. Upstream allows a task 240 s and 30 GB.
RAISED = {"wall_s": 90.0, "cpu_s": 30.0, "memory_mb": 4096, "output_kb": 16 * 1024}


class CodeTask(ProblemTask):
    """A task; upstream's code_prompt is ahead of each completion, which the starter code begins."""

    @property
    def prompt(self) -> str:
        return self.starter_code


def task(row: Row, where: str) -> CodeTask:
    problem = convert(row, where)
    return CodeTask(
        text(row, "task_id", where), problem, problem.starter_code, text(row, "code_prompt", where)
    )


@dataclass(frozen=True)
class CodeHarness(Harness):
    """Judges completions as bigcodebench does.

    package_folder: the installed packages of the benchmark. Without it, programs import the numpy
    of this environment.
    """

    package_folder: Path | None = None
    here: Callable[[str], object] = find_spec  # finds an installed package, or returns None

    def program(self, task: CodeTask, completion: Completion, sanitized: bool) -> str:
        solution = (
            completion.text
            if completion.whole
            else f"{task.prompt}{chr(10) * sanitized}{completion.text}"
        )
        return (
            f"{NAMES}{task.ahead}\n    pass\n"
            f"{sanitize(solution, task.entry_point) if sanitized else solution}"
        )

    def job(self, task: CodeTask, which: str, program: str, job_id: str) -> Job:
        job = task.problem.job(program, job_id)
        if not self.package_folder:
            return job
        limits = {name: max(value, getattr(job.limits, name)) for name, value in RAISED.items()}
        return replace(
            job,
            package_folder=str(self.package_folder.absolute()),
            limits=replace(job.limits, **limits),
        )

    def absent(self, task: CodeTask) -> str:
        lacking = [name for name in task.problem.packages if not self._has(name)]
        hint = "" if self.package_folder else f" (`ratchet benchmarks install {self.name}`)"
        return f"needs {', '.join(lacking)}{hint}" if lacking else super().absent(task)

    def _has(self, name: str) -> bool:
        if self.modules:
            return name in self.modules
        return name in self.packages and bool(self.here(name))

    @cached_property
    def modules(self) -> frozenset[str]:
        """The modules of the package folder."""
        paths = self.package_folder.iterdir() if self.package_folder else ()
        return frozenset(path.name.partition(".")[0] for path in paths)
