"""Reward functions for other trainers: TRL, verl, verifiers, or a loop of your own.

In: a file of problems or questions, completions with the ids of their tasks. Out: values in
[-1, 1]. Where judging failed there is no value, and each trainer leaves the sample out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rewards.config import RewardConfig
from rewards.score import Score
from rewards.scorer import NoScore, Scorer
from rewards.tasks import TaskIndex, read_tasks
from sandbox.sandbox import SandboxConfig


class RewardFunctions:
    """The tests of a file's tasks as reward functions.

    They share one sandbox, which opens at the first program and ends with this process. They may
    be called from several threads. Raises FileNotFoundError, and ProblemError for the first row
    that cannot be read.
    """

    def __init__(
        self,
        tasks: Path | str,
        config: RewardConfig | None = None,
        sandbox: SandboxConfig | None = None,
    ) -> None:
        self._tasks, self._file = TaskIndex(read_tasks(Path(tasks))), str(tasks)
        self._scorer = Scorer(config or RewardConfig(), sandbox)

    def scores(self, pairs: Sequence[tuple[str, str]], step: int = 0) -> list[Score]:
        """Return the scores of (task id, completion) pairs, in order.

        Raises ProblemError for an unknown id, and SandboxError where no sandbox works.
        """
        tasks = [(self._tasks.find(name, self._file), text) for name, text in pairs]
        return self._scorer.score_tasks(tasks, step)

    def trl(
        self,
        completions: Sequence[str | Sequence[Mapping[str, Any]]],
        task_id: Sequence[str],
        log_metric: Callable[[str, float], None] | None = None,
        **_: Any,
    ) -> list[float | None]:
        """Score a batch, as one of TRL's `reward_funcs`; the dataset has a column `task_id`.

        None where judging failed, which TRL leaves out; `mask_sample` in its log is their share.
        """
        texts = [each if isinstance(each, str) else each[-1]["content"] for each in completions]
        values = [score.value for score in self.scores(list(zip(task_id, texts, strict=True)))]
        if log_metric and values:
            log_metric("mask_sample", values.count(None) / len(values))
        return values

    def verl(
        self, data_source: str, solution_str: str, ground_truth: str, **_: Any
    ) -> dict[str, Any]:
        """Score one completion, as verl's `custom_reward_function`; `ground_truth` is a task's id.

        Raises NoScore where judging failed: verl leaves the rollout out.
        """
        [score] = self.scores([(ground_truth, solution_str)])
        return {"score": _value(score), "acc": float(score.solved), "verdict": str(score.verdict)}

    async def verifiers(self, task_id: str, completion: str) -> float:
        """Score one completion, in a reward of a verifiers task.

        Raises NoScore where judging failed: verifiers records it as the rollout's error.
        """
        [score] = await asyncio.to_thread(self.scores, [(task_id, completion)])
        return _value(score)


def _value(score: Score) -> float:
    if score.value is None:
        raise NoScore("no verdict on this completion: left out")
    return score.value
