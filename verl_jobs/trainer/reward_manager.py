"""verl's interface to the rewards: completions in, rewards out, one batch at a time.

verl drops a rollout whose reward raises, and pads its group. So an infrastructure failure raises
here and is counted; it is never scored as 0.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeVar

from verl.experimental.reward_loop.reward_manager.base import RewardManagerBase

from rewards.composite import Reward
from rewards.config import RewardConfig
from rewards.judging import Judged, judge
from rewards.own import reward_of
from rewards.question import Question, RewardTask, task_from_ground_truth
from rewards.score import Score
from sandbox.protocol import Job, Report, Verdict
from sandbox.sandbox import Sandbox, SandboxConfig, SandboxError, run_all
from verl_jobs.config.algorithms import OVERLONG_SHARE
from verl_jobs.config.engine_overrides import scoring_processes
from verl_jobs.config.training import Training
from verl_jobs.config.validation import SOURCE
from verl_jobs.job import TrainingJob
from verl_jobs.trainer import progress

logger = logging.getLogger(__name__)
T = TypeVar("T")
MAX_SANDBOXES = 3  # attempts of a batch, each in a new sandbox
MATHS = ("math", "gsm8k", "aime", "amc")  # parts of the names of verl's mathematics data sources


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
        """Return the scores of (ground truth, completion) pairs, in order.

        The sandbox opens with the first program, and is replaced if all of its verdicts failed.
        Raises SandboxError or OSError after MAX_SANDBOXES sandboxes, and an exception that a
        reward file raises for every completion.
        """
        completions: list[tuple[RewardTask, str]] = [
            (self._task(truth), completion) for truth, completion in pairs
        ]
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
        """Return the results of `ask`.

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


def job_path(config: Any) -> Path:
    """Return the path of a verl run's job file, next to its checkpoints."""
    return Path(config.trainer.default_local_dir).parent / "job.json"


def job_of(config: Any) -> TrainingJob:
    return TrainingJob.read(job_path(config))


def scorer_of(job: TrainingJob) -> Scorer:
    return Scorer(job.reward, sandbox_of(job))


def sandbox_of(job: TrainingJob) -> SandboxConfig:
    """Return this process's part of the sandbox that the profile sets for a node.

    One process a node scores; conversations on GPUs are scored in several, which share it. The
    workers of the backend `ray` are anywhere in the cluster: all processes share them.
    """
    sharing = scoring_processes(job.training) * (
        job.training.scale.nodes if job.backend == "ray" else 1
    )
    workers = job.workers
    if sharing > 1 and not (job.backend == "ray" and workers is None):
        workers = max(1, (workers or len(os.sched_getaffinity(0))) // sharing)
    return SandboxConfig(workers, job.backend, job.isolation, job.packages)


def overlong(training: Training, tokens: int, limit: int) -> float:
    """Return DAPO's length penalty for a completion of `tokens` tokens, 0 to -1.

    It falls linearly over the last part of the maximum length (arXiv:2503.14476, eq. 13). 0 with
    any other rule for long completions (`training.overlong`). limit: the maximum length.
    """
    if training.overlong_rule != "penalty":
        return 0.0
    room = max(1, round(OVERLONG_SHARE * limit))
    return max(-1.0, min(0.0, (limit - room - tokens) / room))


def as_verl(score: Score, completion: str = "", penalty: float = 0.0) -> dict[str, Any]:
    """Return the fields that verl collates. Raises NoScore.

    Every call has the same keys, None for what was not measured; completion, verdict and trace are
    text. penalty: added to the score, not to `acc`.
    """
    if score.value is None:
        raise NoScore("no verdict on this completion: left out of the step")
    share = score.passed / score.total if score.total else 0.0
    figures = {
        "score": score.value + penalty,
        "acc": float(score.solved),
        "tests_passed": share,
        "format": score.components.get("format", 0.0),
    }
    return figures | {
        "visible": score.visible,
        "hidden": score.hidden,
        "denied": score.denied,
        "shared": float(score.shared),
        "unpaid": score.unpaid,
        "trace": json.dumps(score.gave),
        "verdict": str(score.verdict),
        "answer": completion,
    }


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    **reward: Any,
) -> dict[str, Any]:
    """Score one completion, with verl's own signature.

    Use: `reward.custom_reward_function.path=pkg://verl_jobs.trainer.reward_manager`. It is slower
    than the batched manager.

    ground_truth: JSON of a problem or question (`problems.dataset.rl_parquet.ground_truth`,
    `rewards.question.question_truth`), or a bare correct answer. A bare answer needs
    `extra_info["task"]` of "math" or "qa", or a mathematics data source. `extra_info["question"]`
    is its statement, `extra_info["form"]` its `Question.form`. reward: keys of RewardConfig
    (`reward_kwargs`).

    Raises NoScore if the judge failed, ValueError for an invalid ground truth.
    """
    truth = _truth(data_source, ground_truth, extra_info or {})
    [score] = _scorer(RewardConfig.model_validate(reward).model_dump_json()).score(
        [(truth, solution_str)], int((extra_info or {}).get("global_steps", 0))
    )
    return as_verl(score)


@cache
def _scorer(config: str) -> Scorer:
    return Scorer(RewardConfig.model_validate_json(config))


def _truth(data_source: str, ground_truth: str, extra_info: Mapping[str, Any]) -> str:
    if ground_truth.lstrip().startswith("{") and '"' in ground_truth:
        return ground_truth
    task = extra_info.get("task") or (
        "math" if any(name in data_source.lower() for name in MATHS) else None
    )
    if task not in ("math", "qa"):
        raise ValueError(
            f"{data_source}: a bare answer needs extra_info['task'] of math or qa, a program a "
            "problem's JSON"
        )
    fields = {
        "statement": str(extra_info.get("question", "")),
        "form": extra_info.get("form", "evaluated"),
    }
    return json.dumps(
        {"question_id": data_source, "task": task, "answers": [ground_truth]} | fields
    )


class SandboxRewardManager(RewardManagerBase):  # type: ignore[misc]  # verl has no types
    """Scores one completion at a time, for agent loops that do not batch.

    Interface: verl/experimental/reward_loop.
    """

    def __init__(self, config: Any, tokenizer: Any, compute_score: Any = None, **_: Any) -> None:
        super().__init__(config, tokenizer, compute_score)
        self.job = job_of(config)
        self.scorer = scorer_of(self.job)
        # a thread waits for each program: enough of them for every worker of the sandbox
        workers = self.scorer.confined.workers or len(os.sched_getaffinity(0))
        self.threads = ThreadPoolExecutor(2 * workers, "reward")

    async def run_single(self, data: Any) -> dict[str, Any]:
        return await asyncio.get_running_loop().run_in_executor(self.threads, self._score, data)

    def _score(self, data: Any) -> dict[str, Any]:
        item = data[-1:][0]
        ids = item.batch["responses"]
        valid = int(item.batch["attention_mask"][-ids.shape[-1] :].sum())
        completion = self.tokenizer.decode(ids[:valid], skip_special_tokens=True)
        truth, step = (
            item.non_tensor_batch["reward_model"]["ground_truth"],
            int(item.non_tensor_batch.get("global_steps", 0)),
        )
        [score] = self.scorer.score([(truth, completion)], step)
        progress.touch(self.job.path)
        training = self.job.training
        validates = item.non_tensor_batch.get("data_source") == SOURCE
        limit = training.answer_tokens if validates else training.answer_tokens_at(step)
        result = as_verl(score, completion, overlong(training, valid, limit))
        return {"reward_score": result["score"], "reward_extra_info": result}
