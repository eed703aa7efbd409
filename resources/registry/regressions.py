"""Tasks that a champion solved and a later one lost: remembered permanently, tested at every gate.

In: tasks lost by a promotion. Out: the tasks for the benchmark `regression`; a retraining weighs
problems that resemble them more. One file of JSON lines under the home is appended to under a lock
and synced. A half-written line that a kill left at its end is cut off before the next line.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from artifacts.json_lines import line_of, row_of
from problems.schema import Problem, from_row, to_row


class BadLine(ValueError):
    """A malformed line of the record. The message names file and line."""


@dataclass(frozen=True)
class LostTask:
    """A lost task.

    `number` is that of the pipeline run that lost it: a pipeline run is tested on what earlier ones
    lost. `problem` is as in the datasets.
    """

    task_id: str
    benchmark: str
    solved_by: str
    lost_by: str
    run_id: str
    number: int
    problem: dict[str, Any]
    at: str = ""

    def as_problem(self) -> Problem:
        return from_row(self.problem, f"the remembered task {self.task_id}")


class RegressionSet:
    """The record of lost tasks. Safe among processes.

    path: the file, created at the first task.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def remember(
        self,
        problems: Iterable[Problem],
        *,
        benchmark: str,
        solved_by: str,
        lost_by: str,
        run_id: str,
        number: int,
    ) -> list[LostTask]:
        """Append the tasks that are new, and return those. A task is recorded once."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            known = {lost.task_id for lost in self._whole(file.fileno())}
            now = datetime.now(UTC).isoformat(timespec="seconds")
            new = [
                LostTask(
                    task_id=problem.problem_id,
                    benchmark=benchmark,
                    solved_by=solved_by,
                    lost_by=lost_by,
                    run_id=run_id,
                    number=number,
                    problem=to_row(problem),
                    at=now,
                )
                for problem in problems
                if problem.problem_id not in known
            ]
            file.write(b"".join(line_of(asdict(lost)) for lost in new))
            file.flush()
            os.fsync(file.fileno())
        return new

    def read(self, before: int | None = None) -> list[LostTask]:
        """Return all tasks, oldest first. Raises BadLine.

        before: return only tasks that pipeline runs with a smaller number lost.
        """
        if not self.path.exists():
            return []
        rows = [
            self._line(number, line)
            for number, line in enumerate(_whole_lines(self.path.read_bytes()), start=1)
        ]
        return [lost for lost in rows if before is None or lost.number < before]

    def _whole(self, descriptor: int) -> list[LostTask]:
        """Return the lines, after cutting off a half line at the end."""
        content = self.path.read_bytes()
        os.ftruncate(descriptor, content.rfind(b"\n") + 1)
        return self.read()

    def _line(self, number: int, line: bytes) -> LostTask:
        try:
            return LostTask(**row_of(line))
        except (ValueError, TypeError) as error:
            raise BadLine(
                f"{self.path}: line {number} is not a lost task ({error}): restore the file from a "
                "backup"
            ) from error


def _whole_lines(content: bytes) -> list[bytes]:
    return content[: content.rfind(b"\n") + 1].splitlines()
