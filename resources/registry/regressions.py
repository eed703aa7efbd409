"""Tasks that a champion solved and a later one lost: remembered permanently, tested at every gate.

In: tasks lost by a promotion. Out: the tasks for the benchmark `regression`; a retraining weighs
problems that resemble them more. Each is a row with its hash, in the database of the run records.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from artifacts.integrity import RESTORE
from artifacts.json_lines import line_of, row_of
from problems.schema import Problem, from_row, to_row
from resources.registry.ledger_database import Schema, database

TABLE = (
    "CREATE TABLE IF NOT EXISTS lost_tasks (entry BIGINT PRIMARY KEY, "
    "task_id TEXT NOT NULL UNIQUE, line TEXT NOT NULL);"
)
SCHEMA = Schema("the lost tasks", "lost_tasks", "lost_tasks", TABLE, TABLE, lock=0x7261_7463_0005)


class BadLine(ValueError):
    """A malformed row of the record. The message names database and row."""


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
    """The record of lost tasks. Safe among processes and machines.

    place: a SQLite file, created at the first task, or a `postgresql://` URL.
    """

    def __init__(self, place: Path | str) -> None:
        self.place = place
        self._database = database(place, SCHEMA)

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
        with self._database.writing() as cursor:
            known = self._read(cursor)
            names = {lost.task_id for lost in known}
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
                if problem.problem_id not in names
            ]
            marks = ", ".join([self._database.mark] * 3)
            for entry, lost in enumerate(new, start=len(known) + 1):
                row = (entry, lost.task_id, line_of(asdict(lost)).decode())
                cursor.execute(f"INSERT INTO lost_tasks VALUES ({marks})", row)
        return new

    def read(self, before: int | None = None) -> list[LostTask]:
        """Return all tasks, oldest first. Raises BadLine.

        before: return only tasks that pipeline runs with a smaller number lost.
        """
        with self._database.reading() as cursor:
            tasks = self._read(cursor) if cursor else []
        return [lost for lost in tasks if before is None or lost.number < before]

    def _read(self, cursor: Any) -> list[LostTask]:
        cursor.execute("SELECT entry, line FROM lost_tasks ORDER BY entry")
        return [self._task(entry, line) for entry, line in cursor.fetchall()]

    def _task(self, entry: int, line: str) -> LostTask:
        try:
            return LostTask(**row_of(line.encode()))
        except (ValueError, TypeError) as error:
            raise BadLine(
                f"{self.place}: row {entry} is not a lost task ({error}): {RESTORE}"
            ) from error
