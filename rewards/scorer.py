"""Score batches of completions in one process, for any trainer. In: tasks and completions. Out: a
`Score` for each, None as its value where judging failed.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache
from typing import TypeVar

from rewards.composite import Reward
from rewards.config import RewardConfig
from rewards.judging import Judged, judge
from rewards.own import reward_of
from rewards.question import Question, RewardTask, task_from_ground_truth
from rewards.score import Score
from sandbox.protocol import Job, Report, Verdict
from sandbox.sandbox import Sandbox, SandboxConfig, SandboxError, run_all

logger = logging.getLogger(__name__)
T = TypeVar("T")
MAX_SANDBOXES = 3  # attempts of a batch, each in a new sandbox


class NoScore(RuntimeError):
    """The judge failed, not the completion."""


class Scorer:
    """One sandbox and one reward per process, created at the first use; thread-safe."""

    def __init__(self, config: RewardConfig, sandbox: SandboxConfig | None = None) -> None:
        self.config, self.confined = config, sandbox or SandboxConfig()
        self._lock = threading.Lock()
        self._task = lru_cache(maxsize=4096)(task_from_ground_truth)

    @cached_property
    def _sandbox(self) -> Sandbox:
        return Sandbox(self.confined).__enter__()

    @cached_property
    def _reward(self) -> Reward:
        return reward_of(self.config)

    @property
    def sandbox(self) -> Sandbox:
        """The open sandbox of this scorer."""
        with self._lock:  # without it cached_property could create two sandboxes for two threads
            return self._sandbox

    def score(self, pairs: Sequence[tuple[str, str]], step: int = 0) -> list[Score]:
        """Return the scores of (ground truth, completion) pairs, in order; see `score_tasks`."""
        return self.score_tasks([(self._task(truth), text) for truth, text in pairs], step)

    def score_tasks(
        self, completions: Sequence[tuple[RewardTask, str]], step: int = 0
    ) -> list[Score]:
        """Return the scores of completions, in order.

        The sandbox opens with the first program, and is replaced if all of its verdicts failed.
        Raises SandboxError or OSError after MAX_SANDBOXES sandboxes, and an exception that a
        reward file raises for every completion.
        """
        with self._lock:
            reward = self._reward
        programs = any(not isinstance(task, Question) for task, _ in completions)
        return score_batch(
            reward,
            self._with_retries(
                lambda sandbox: judge(sandbox, completions, step),
                lambda one: one.report.verdict,
                programs,
            ),
        )

    def run(self, jobs: Iterable[Job], repeat: int = 1) -> list[Report]:
        """Run jobs without scoring; return their reports in order."""
        job_list = list(jobs)
        return self._with_retries(
            lambda sandbox: run_all(sandbox, job_list, repeat) if sandbox else [],
            lambda report: report.verdict,
        )

    def _with_retries(
        self,
        run: Callable[[Sandbox | None], list[T]],
        verdict: Callable[[T], Verdict],
        programs: bool = True,
    ) -> list[T]:
        """Return the results of `run`.

        Retry in a new sandbox if it fails or gives no verdict at all. programs: whether a sandbox
        is needed.
        """
        for _ in range(MAX_SANDBOXES - 1):
            sandbox = self.sandbox if programs else None
            try:
                results = run(sandbox)
                if not results or any(verdict(result) is not Verdict.INFRA for result in results):
                    return results
                logger.error(
                    "no verdict on %d completions: retrying in a new sandbox", len(results)
                )
            except (SandboxError, OSError) as error:
                logger.error("the sandbox failed, retrying in a new one: %s", error)
            self._replace(sandbox)
        return run(self.sandbox if programs else None)

    def _replace(self, broken: Sandbox | None) -> None:
        """Close the broken sandbox, unless another thread has replaced it.

        The next use opens a new one.
        """
        with self._lock:
            if self.__dict__.get("_sandbox") is not broken or broken is None:
                return
            del self.__dict__["_sandbox"]
        broken.close()


def score_batch(reward: Reward, batch: Sequence[Judged]) -> list[Score]:
    """Return the reward's scores; a completion for which it raises, as a user's may, has no score.

    Raises the reward's exception if it raises for every completion.
    """
    try:
        return reward.score_all(batch)
    except Exception:
        logger.exception("the reward failed on a batch of %d: scoring one by one", len(batch))
    scores: list[Score] = []
    for at, judged in enumerate(batch):
        try:
            scores += reward.score_all([judged])
        except Exception:
            if at == len(batch) - 1 and not any(score.value is not None for score in scores):
                raise
            scores.append(Score(None, Verdict.INFRA, total=judged.report.total))
    return scores
