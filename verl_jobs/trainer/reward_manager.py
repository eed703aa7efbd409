"""verl's interface to the rewards: completions in, rewards out, one batch at a time.

verl drops a rollout whose reward raises, and pads its group. So an infrastructure failure raises
here and is counted; it is never scored as 0.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from verl.experimental.reward_loop.reward_manager.base import RewardManagerBase

from rewards.config import RewardConfig
from rewards.score import Score
from rewards.scorer import NoScore, Scorer
from sandbox.cores import usable_cores
from sandbox.sandbox import SandboxConfig
from verl_jobs.config.algorithms import OVERLONG_SHARE
from verl_jobs.config.engine_overrides import scoring_processes
from verl_jobs.config.training import Training
from verl_jobs.config.validation import SOURCE
from verl_jobs.job import TrainingJob
from verl_jobs.trainer import progress

MATHS = ("math", "gsm8k", "aime", "amc")  # parts of the names of verl's mathematics data sources


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
        workers = max(1, (workers or usable_cores()) // sharing)
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
        workers = self.scorer.confined.workers or usable_cores()
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
