"""What a style does with one job: the base of the attempts in sandbox/styles/."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from sandbox.worker.attempt_processes import AttemptProcesses
from sandbox.worker.messages import Result


class Attempt(ABC):
    """Decides the tests of one job.

    Expected values reach this process and no further. The program's process is forked from the
    zygote, which has never seen them.
    """

    def __init__(self, processes: AttemptProcesses) -> None:
        """processes: starts, observes and ends the processes of the job."""
        self.processes, self.job = processes, processes.job
        self.tests: list[dict[str, Any]] = processes.job["tests"]
        self.total = len(self.tests)  # rows of the report
        self.names: list[str] = []  # names of the rows, if they have any
        self.shared = False  # whether a verdict depends on what the program itself said
        self.unusable = False  # a test or checker of the problem cannot be run

    @abstractmethod
    def run(self) -> list[Result]:
        """Return one result row per decided test, in order; fewer rows than tests if the program
        had to be stopped.
        """
