"""verl's door to the rewards room: answers in, rewards out, a whole batch at a time; a sample without a score is no sample.

verl drops a rollout whose reward raises, and pads its group; so an infrastructure failure raises here, and is counted, and is never a zero.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from verl.experimental.reward_loop.reward_manager.base import RewardManagerBase

from problems.rl_parquet import problem_from_ground_truth
from problems.schema import Problem
from rewards.composite import Reward, score_answers
from rewards.score import Score
from sandbox.sandbox import Sandbox, SandboxConfig
from verl_jobs.job import TrainingJob


class NoScore(RuntimeError):
    """The judge failed, not the answer."""


class Scorer:
    """One sandbox and one reward a process, made at the first use; safe to use from threads."""

    def __init__(self, job: TrainingJob) -> None:
        self.job = job
        self._lock = threading.Lock()
        self._problem = lru_cache(maxsize=4096)(problem_from_ground_truth)

    @cached_property
    def _sandbox(self) -> Sandbox:
        return Sandbox(SandboxConfig(isolation=self.job.isolation)).__enter__()

    @cached_property
    def _reward(self) -> Reward:
        return Reward(self.job.reward)

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[Score]:
        """Scores in the order of (ground truth, answer)."""
        with self._lock:  # cached_property alone would make two sandboxes for two threads
            sandbox, reward = self._sandbox, self._reward
        answered: list[tuple[Problem, str]] = [(self._problem(truth), answer) for truth, answer in pairs]
        return score_answers(sandbox, reward, answered)


def scorer_of(config: Any) -> Scorer:
    """The scorer of a verl run: its job lies beside its checkpoints."""
    return Scorer(TrainingJob.read(Path(config.trainer.default_local_dir).parent / "job.json"))


def as_verl(score: Score) -> dict[str, float]:
    """What verl collates: the same keys on every call. Raises NoScore."""
    if score.value is None:
        raise NoScore("no verdict on this answer: left out of the step")
    share = score.passed / score.total if score.total else 0.0
    return {"score": score.value, "acc": float(score.solved), "tests_passed": share, "format": score.components.get("format", 0.0)}


class SandboxRewardManager(RewardManagerBase):  # type: ignore[misc]  # verl has no types
    """One answer at a time, for agent loops that do not batch (verl/experimental/reward_loop)."""

    def __init__(self, config: Any, tokenizer: Any, compute_score: Any = None, **_: Any) -> None:
        super().__init__(config, tokenizer, compute_score)
        self.scorer = scorer_of(config)

    async def run_single(self, data: Any) -> dict[str, Any]:
        item = data[-1:][0]
        ids = item.batch["responses"]
        valid = int(item.batch["attention_mask"][-ids.shape[-1] :].sum())
        answer = self.tokenizer.decode(ids[:valid], skip_special_tokens=True)
        truth = item.non_tensor_batch["reward_model"]["ground_truth"]
        [score] = await asyncio.to_thread(self.scorer.score, [(truth, answer)])
        result = as_verl(score)
        return {"reward_score": result["score"], "reward_extra_info": result}
