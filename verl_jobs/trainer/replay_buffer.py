"""verl's replay buffer with an eye on what is trained on: figures of each step's answers go into verl's own metrics, and a lone answer is left out.

An answer without a score never comes here. verl pads the batch with rows of a group of their own and an empty mask, so that no other group's baseline
moves. But of a group that kept one answer alone, verl takes 0 as the baseline (core_algos.py, `compute_grpo_outcome_advantage`; RLOO likewise): its
whole reward becomes its advantage, though there is nothing to compare it with. So that one is left out too, and counted.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import transfer_queue as tq
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer

from rewards.watch import PREFIX, step_metrics
from verl_jobs import faults, samples
from verl_jobs.config.training import Training
from verl_jobs.curriculum import curriculum, draws
from verl_jobs.job import TrainingJob
from verl_jobs.samples import BY_LENGTH, CUT, Sample
from verl_jobs.trainer import checkpoints as saving
from verl_jobs.trainer import early_stop as stopping
from verl_jobs.trainer import remax
from verl_jobs.trainer.rescaled import rescale

LONE = f"{PREFIX}/lone_answers_left_out"
BASELINE = f"{PREFIX}/greedy_baseline"
TEMPERATURE = f"{PREFIX}/temperature"


class WatchedReplayBuffer(ReplayBuffer):  # type: ignore[misc]  # verl has no types
    """sampler_kwargs: `answers`, how many a prompt is asked for; `least`, how many scored ones a group needs; `greedy`, whether session 0 is a
    greedy answer and a baseline; `most_dropped`, how many groups that are alike a step may draw again; `normalised`, `clip`: of rewards
    (verl_jobs/trainer/rescaled.py); `longest`, tokens of an answer; the rest is verl's.
    """

    def __init__(self, *args: Any, sampler_kwargs: Any = None, **kwargs: Any) -> None:
        options = dict(sampler_kwargs or {})
        self.answers, self.least = int(options.pop("answers", 1)), int(options.pop("least", 1))
        self.greedy, self.most_dropped = (
            bool(options.pop("greedy", False)),
            int(options.pop("most_dropped", 0)),
        )
        self.normalised, self.clip = (
            bool(options.pop("normalised", False)),
            float(options.pop("clip", 0.0)),
        )
        self.baselines: dict[str, float] = {}
        self.longest = int(options.pop("longest", 1 << 30))
        self.dropped = 0
        self.cleared: list[
            tuple[str, bool]
        ] = []  # verdicts of groups that this step drew and does not learn from
        self.trainer: Any = getattr(
            kwargs.get("refill_fn"), "__self__", None
        )  # verl hands its trainer's own method over
        super().__init__(*args, sampler_kwargs=sampler_kwargs, **options, **kwargs)

    def _dapo_filtered_keys(self, partition_id: str) -> tuple[set[str], Counter[float]]:
        """verl draws again for ever where every group is solved, or none is; here a step takes what there is when `most_dropped` is reached.

        Each dropped group has brought verl credit for two more, so that the step ends with a whole batch.
        """
        if self.dropped >= self.most_dropped:
            return set(), Counter()
        found, counts = super()._dapo_filtered_keys(partition_id)
        self.dropped += len(found)
        return found, counts

    def _clear_groups(self, partition_id: str, uids: set[str]) -> None:
        """What DAPO drops tells the curriculum most: that a problem is always solved, or never."""
        keys = [key for key in self.partitions[partition_id] if key.split("_")[0] in uids]
        if keys and partition_id != "val" and curriculum.present():
            fields = tq.kv_batch_get(
                keys=keys, partition_id=partition_id, select_fields=["extra_fields", "extra_info"]
            )
            seen = [_plain(field).get("reward_extra_info", {}) for field in fields["extra_fields"]]
            self.cleared += map(_outcome, fields["extra_info"], seen)
        super()._clear_groups(partition_id, uids)

    def sample(
        self, global_steps: int, partition_id: str, batch_size: int
    ) -> tuple[Any, dict[str, Any]]:
        """verl's batch of so many prompts, with our figures among its metrics. Raises RuntimeError where no group can be learned from, and
        EarlyStop.
        """
        scheduled: dict[str, float] = {}
        if partition_id != "val":
            saving.end_if_asked(_job_folder(), global_steps - 1)
            try:
                stopping.check(_job_folder())
            except stopping.EarlyStop:
                self.trainer.checkpoint_callback.await_upload()  # this process ends with the training
                raise
            scheduled = self._set_temperature(
                TrainingJob.read(_job_folder() / "job.json").training, global_steps
            )
        self.dropped = 0
        batch, metrics = super().sample(
            global_steps=global_steps, partition_id=partition_id, batch_size=batch_size
        )
        if partition_id == "val":
            if not batch.keys:  # of a training batch verl says so itself
                raise RuntimeError(
                    f"no answer to {batch_size} validation problems: {_last_fault()}"
                )
            return batch, metrics
        if self.greedy:
            batch, baseline = self._without_greedy(batch, partition_id)
            metrics = metrics | {BASELINE: baseline}
        fields = tq.kv_batch_get(
            keys=batch.keys,
            partition_id=partition_id,
            select_fields=["extra_fields", "extra_info", "rm_scores"],
        )
        told = [_plain(field) for field in fields["extra_fields"]]
        seen = [
            each.get("reward_extra_info", {}) for each in told
        ]  # as verl's own filter reads them
        cut = list(map(self._cut, told, fields["rm_scores"]))
        samples.write(
            _job_folder(),
            global_steps,
            map(_sample, fields["extra_info"], seen, fields["rm_scores"], cut),
        )
        figures = step_metrics(seen, asked=batch_size * self.answers) | {CUT: fmean(cut)}
        if table := curriculum.present():
            drawn = table.observe([*self.cleared, *map(_outcome, fields["extra_info"], seen)])
            draws.write(_job_folder(), global_steps, drawn)
            figures |= curriculum.figures(drawn, table)
            self.cleared = []
        lone = too_few(batch.keys, self.least)
        if lone:
            kept = [key for key in batch.keys if key not in lone]
            if not kept:
                raise RuntimeError(
                    "no group has two answers with a score: the judge fails; its log says why"
                )
            tq.kv_clear(keys=sorted(lone), partition_id=partition_id)
            batch = batch.select_keys(kept)
        if self.normalised or self.clip:
            figures |= rescale(
                batch.keys, partition_id, self.baselines, normalised=self.normalised, clip=self.clip
            )
        return batch, metrics | figures | scheduled | {LONE: float(len(lone))}

    def _set_temperature(self, training: Training, step: int) -> dict[str, float]:
        """With a schedule: the trainer scales its logits by the temperature that this step's answers are drawn with, as the agent loop does."""
        if not training.final_temperature:
            return {}
        temperature = training.temperature_at(step)
        self.trainer.config.actor_rollout_ref.rollout.temperature = (
            temperature  # trainer_base.py reads it anew in each step
        )
        return {TEMPERATURE: temperature}

    def _cut(self, told: dict[str, Any], scores: Any) -> bool:
        """Whether its length ended the answer. scores: (tokens); where an agent loop does not say why it ended, one as long as it may be was cut.

        verl's `response_length/clip_ratio` is another thing: the share of answers as long as the longest of their batch.
        """
        return bool(
            told["stop_reason"] == BY_LENGTH
            if "stop_reason" in told
            else len(scores) >= self.longest
        )

    def _without_greedy(self, batch: Any, partition_id: str) -> tuple[Any, float]:
        """The batch less the greedy answers, whose rewards become baselines, and their mean. A prompt without one goes with all of its answers.

        Raises RuntimeError where nothing is left.
        """
        greedy = [key for key in batch.keys if int(key.rsplit("_", 2)[1]) == remax.GREEDY]
        rewards = (
            tq.kv_batch_get(keys=greedy, partition_id=partition_id, select_fields=["rm_scores"])[
                "rm_scores"
            ]
            if greedy
            else []
        )
        baselines = {
            key.rsplit("_", 2)[0]: float(scores.sum())
            for key, scores in zip(greedy, rewards, strict=True)
        }
        remax.remember(baselines)
        self.baselines = baselines
        kept = [
            key
            for key in batch.keys
            if key not in set(greedy) and key.rsplit("_", 2)[0] in baselines
        ]
        if not kept:
            raise RuntimeError(
                "no problem has a greedy answer with a score and a sampled one: the judge fails; its log says why"
            )
        tq.kv_clear(keys=sorted(set(batch.keys) - set(kept)), partition_id=partition_id)
        return batch.select_keys(kept), sum(baselines.values()) / len(baselines)


def _last_fault() -> str:
    told = faults.read(_job_folder())
    return str(told[-1]) if told else "the trainer's log says why"


def _plain(field: Any) -> dict[str, Any]:
    found: dict[str, Any] = getattr(field, "data", field)
    return found


def _sample(about: Any, seen: dict[str, Any], scores: Any, cut: bool) -> Sample:
    return Sample(
        problem_id=str(_plain(about).get("problem_id", "")),
        answer=str(seen.get("answer", "")),
        reward=float(scores.sum()),
        verdict=str(seen.get("verdict", "")),
        tests_passed=float(seen.get("tests_passed", 0.0)),
        trace=json.loads(seen.get("trace", "{}")),
        cut=cut,
    )


def _outcome(about: Any, seen: dict[str, Any]) -> tuple[str, bool]:
    """Problem, and whether the answer solved it. Raises ValueError where the reward does not say."""
    if "acc" not in seen:
        raise ValueError(
            "a curriculum needs `acc` of every answer, and this reward manager gives none: add it, or set training.curriculum to uniform"
        )
    return str(_plain(about).get("problem_id", "")), seen["acc"] == 1


def _job_folder() -> Path:
    """In the trainer's process: that of verl's metrics file (callback.py sets it)."""
    return Path(os.environ["VERL_FILE_LOGGER_PATH"]).parent


def too_few(keys: Sequence[str], least: int) -> set[str]:
    """The keys (`prompt_session_index`) of prompts with fewer sessions than `least`."""
    sessions = Counter(
        prompt for prompt, _ in {(key.rsplit("_", 2)[0], key.rsplit("_", 2)[1]) for key in keys}
    )
    return {key for key in keys if sessions[key.rsplit("_", 2)[0]] < least}
