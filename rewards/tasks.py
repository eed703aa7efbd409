"""Read tasks to reward from a file: problems in any columns that sources have, or questions.

In: a file. Out: its tasks, to be looked up by id.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from problems.columns import ProblemError
from problems.reading.own import own
from problems.reading.rows import local_rows
from problems.sources.registry import load, source_name
from rewards.question import RewardTask, task_from_ground_truth
from sandbox.reading import near


def read_tasks(path: Path) -> list[RewardTask]:
    """Return the problems of a file, or its questions where a row has `answers`.

    Raises FileNotFoundError, and ProblemError for the first row that cannot be read.
    """
    rows = list(local_rows(own(path.name), path))
    if not any(isinstance(row, dict) and "answers" in row for _, row in rows):
        loaded = load(source_name(path), path)
        for bad in loaded.rejected:
            raise ProblemError(bad.reason, bad.fix, bad.row)
        return [*loaded.problems]
    tasks: list[RewardTask] = []
    for where, row in rows:
        try:
            tasks.append(task_from_ground_truth(json.dumps(row)))
        except (ValueError, TypeError) as error:
            raise ProblemError(
                str(error), "a question has question_id, task, statement and answers", where
            ) from error
    return tasks


class TaskIndex:
    """Tasks by id. An id with another source, or without one, is the same: `Mbpp/2` or `2` for
    `mbpp/2`.
    """

    def __init__(self, tasks: Iterable[RewardTask]) -> None:
        self.tasks = {task.problem_id: task for task in tasks}
        self._by_key = {_key(name): task for name, task in self.tasks.items()}

    def find(self, name: str, where: str) -> RewardTask:
        """Return a task. Raises ProblemError for an unknown one, with the nearest known id."""
        by_key = self._by_key
        task = self.tasks.get(name) or by_key.get(name) or by_key.get(_key(name))
        if task is None:
            raise ProblemError(
                f"no task {name!r}{near(_key(name), self._by_key)}",
                f"the problems are {', '.join([*self.tasks][:5])} …",
                where,
            )
        return task


def _key(name: str) -> str:
    return name.partition("/")[2] or name
