"""verl's replay buffer with per-step metrics, and without lone completions.

Metrics of each step's completions are added to verl's own. A completion without a score never
reaches this buffer. verl pads the batch with rows of their own group and an empty mask, so that no
other group's baseline changes. But for a group with only one remaining completion, verl uses 0 as
the baseline (core_algos.py, `compute_grpo_outcome_advantage`; RLOO likewise). Its whole reward
would become its advantage, although there is nothing to compare it with. So lone completions are
left out too, and counted.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import transfer_queue as tq

from rewards.config import RewardConfig
from rewards.watch import PREFIX, domain_metrics, step_metrics
from verl_jobs import faults, samples
from verl_jobs.adapter.versions import adapter
from verl_jobs.config.training import Training
from verl_jobs.curriculum import curriculum, draws
from verl_jobs.job import TrainingJob
from verl_jobs.samples import CUT, Sample
from verl_jobs.trainer import checkpoints, early_stop, progress, remax, trainer_lease
from verl_jobs.trainer.batch_fields import outcome_of, sample_of, unwrapped
from verl_jobs.trainer.rescaled import rescale
from verl_jobs.trainer.truncated import is_truncated, mask

LONE = f"{PREFIX}/lone_answers_left_out"
BASELINE = f"{PREFIX}/greedy_baseline"
TEMPERATURE = f"{PREFIX}/temperature"
LIMIT = f"{PREFIX}/answer_tokens"  # maximum tokens of the completions sampled for this step
STALE_MEAN, STALE_MAX = f"{PREFIX}/staleness_mean", f"{PREFIX}/staleness_max"  # weight versions


class Watched:
    """Our metrics, early stopping and filters, in front of one of verl's replay buffers.

    sampler_kwargs: `answers`: completions per prompt; `least`: minimum scored completions of a
    group; `greedy`: whether session 0 is a greedy completion and baseline; `most_dropped`: maximum
    number of uniform groups that a step replaces; `normalised`, `clip`: of rewards
    (verl_jobs/trainer/rescaled.py); `masked`: whether truncated completions are not learned from
    (verl_jobs/trainer/truncated.py). The others are verl's.
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
        self.masked = bool(options.pop("masked", False))
        self.baselines: dict[str, float] = {}
        self.step, self.dropped = 0, 0
        self.training: Training  # of this step
        self.reward: RewardConfig
        # of the step so far: an asynchronous trainer samples each update's batch separately
        self.samples: list[Sample] = []
        self.draws: list[draws.Draw] = []
        # outcomes of groups that this step sampled and does not train on
        self.cleared: list[tuple[str, bool]] = []
        # verl passes a bound method of its trainer
        self.trainer: Any = getattr(kwargs.get("refill_fn"), "__self__", None)
        super().__init__(*args, sampler_kwargs=sampler_kwargs, **options, **kwargs)  # type: ignore[call-arg]

    def may_drop(self) -> bool:
        """Limit verl's dynamic sampling to `most_dropped` groups; then accept the groups there are.

        verl would sample forever if every group is solved or none is. Each dropped group has given
        verl credit for two more, so the step still ends with a full batch.
        """
        return self.dropped < self.most_dropped

    def on_dropped(self, groups: int) -> None:
        self.dropped += groups

    def before_clear(self, partition_id: str, keys: list[str]) -> None:
        """Keep the outcomes of dropped groups for the curriculum.

        That a problem is always or never solved informs it most.
        """
        if keys and partition_id != "val" and curriculum.current_table():
            fields = tq.kv_batch_get(
                keys=keys, partition_id=partition_id, select_fields=["extra_fields", "extra_info"]
            )
            reward_infos = [
                unwrapped(field).get("reward_extra_info", {}) for field in fields["extra_fields"]
            ]
            self.cleared += map(outcome_of, fields["extra_info"], reward_infos)

    def sample(
        self, global_steps: int, partition_id: str, batch_size: int
    ) -> tuple[Any, dict[str, Any]]:
        """Return verl's batch of `batch_size` prompts, with our figures among its metrics.

        Raises RuntimeError if no group can be trained on, and EarlyStop.
        """
        figures = self._before_batch(global_steps) if partition_id != "val" else {}
        phase = "validation after" if partition_id == "val" else "rollouts of"
        progress.begin(_job_folder(), f"{phase} step {global_steps}")
        batch, metrics = super().sample(  # type: ignore[misc]
            global_steps=global_steps, partition_id=partition_id, batch_size=batch_size
        )
        if partition_id == "val":
            if not batch.keys:  # for a training batch verl raises its own error
                raise RuntimeError(
                    f"no completion for {batch_size} validation problems: {_last_fault()}"
                )
            return batch, metrics
        if self.greedy:
            batch, figures[BASELINE] = self._without_greedy(batch, partition_id)
        recorded, truncated = self._record(batch, partition_id, global_steps, batch_size)
        figures |= recorded
        if self.masked:
            cut = [key for key, is_cut in zip(batch.keys, truncated, strict=True) if is_cut]
            figures |= mask(cut, len(batch.keys), partition_id)
        batch, figures[LONE] = self._without_lone(batch, partition_id)
        if self.normalised or self.clip:
            figures |= rescale(
                batch.keys, partition_id, self.baselines, normalised=self.normalised, clip=self.clip
            )
        progress.begin(_job_folder(), f"{progress.UPDATE} of step {global_steps}")
        return batch, metrics | figures

    def _before_batch(self, step: int) -> dict[str, float]:
        """End after a notice or a reason to stop early, else apply the step's schedules.

        Only before the first batch of a step: the trainer saves between steps.
        """
        if step == self.step:
            return {}
        self.step, self.dropped, self.samples, self.draws = step, 0, [], []
        if trainer_lease.notice(_job_folder()):
            self._await_save()
        checkpoints.end_after_notice(_job_folder(), step - 1)
        early_stop.check(_job_folder(), self._await_save)
        job = TrainingJob.read(_job_folder() / "job.json")
        self.training, self.reward = job.training, job.reward
        staged = self.training.answer_stages
        limit = {LIMIT: float(self.training.answer_tokens_at(step))} if staged else {}
        return self._set_temperature(self.training, step) | limit

    def _await_save(self) -> None:
        """Wait for the last save, which may still be being written or uploaded."""
        self.trainer.checkpoint_callback.await_save()

    def _record(
        self, batch: Any, partition_id: str, step: int, batch_size: int
    ) -> tuple[dict[str, float], list[bool]]:
        """Write the step's samples and the curriculum's draws.

        Returns their figures, and whether each completion was truncated.
        """
        fields = tq.kv_batch_get(
            keys=batch.keys,
            partition_id=partition_id,
            select_fields=["extra_fields", "extra_info", "rm_scores"],
        )
        extra_fields = [unwrapped(field) for field in fields["extra_fields"]]
        # as verl's own filter reads them
        reward_infos = [each.get("reward_extra_info", {}) for each in extra_fields]
        dispatched = (int(tag["global_steps"]) for tag in batch.tags)
        limits = map(self.training.response_tokens_at, dispatched)
        truncated = list(map(is_truncated, extra_fields, fields["rm_scores"], limits))
        self.samples += map(
            sample_of, fields["extra_info"], extra_fields, fields["rm_scores"], truncated
        )
        samples.write(_job_folder(), step, self.samples)
        figures = step_metrics(reward_infos, sampled=batch_size * self.answers)
        figures[CUT] = fmean(truncated)
        if self.reward.by:
            domains = [
                self.reward.domain(unwrapped(each).get("tags", ())) for each in fields["extra_info"]
            ]
            rewards = [float(tokens.sum()) for tokens in fields["rm_scores"]]
            solved = [each.get("acc") == 1 for each in reward_infos]
            figures |= domain_metrics(zip(domains, rewards, solved, strict=True))
        if table := curriculum.current_table():
            outcomes = [*self.cleared, *map(outcome_of, fields["extra_info"], reward_infos)]
            step_draws = table.observe(outcomes)
            self.draws += step_draws
            draws.write(_job_folder(), step, self.draws)
            figures |= curriculum.figures(step_draws, table)
            self.cleared = []
        return figures, truncated

    def _without_lone(self, batch: Any, partition_id: str) -> tuple[Any, float]:
        """Return the batch without the completions of small groups, and their number.

        Raises RuntimeError if nothing is left.
        """
        lone = keys_of_small_groups(batch.keys, self.least)
        if not lone:
            return batch, 0.0
        remaining = [key for key in batch.keys if key not in lone]
        if not remaining:
            raise RuntimeError(
                "no group has two scored completions: the judge failed, see the trainer's log"
            )
        tq.kv_clear(keys=sorted(lone), partition_id=partition_id)
        return batch.select_keys(remaining), float(len(lone))

    def _set_temperature(self, training: Training, step: int) -> dict[str, float]:
        """Apply the temperature schedule, if any, to the trainer.

        The trainer scales its logits by the temperature that this step's completions are sampled
        with, as the agent loop does.
        """
        if not training.final_temperature:
            return {}
        temperature = training.temperature_at(step)
        self.trainer.config.actor_rollout_ref.rollout.temperature = (
            temperature  # trainer_base.py reads it in each step
        )
        return {TEMPERATURE: temperature}

    def _without_greedy(self, batch: Any, partition_id: str) -> tuple[Any, float]:
        """Return the batch without the greedy completions, and the mean of their rewards.

        The rewards become baselines. A prompt without a greedy completion is removed with all its
        completions. Raises RuntimeError if nothing is left.
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
        remax.store_baselines(baselines)
        self.baselines = baselines
        remaining = [
            key
            for key in batch.keys
            if key not in set(greedy) and key.rsplit("_", 2)[0] in baselines
        ]
        if not remaining:
            raise RuntimeError(
                "no problem has a scored greedy completion and a scored sampled one: the judge "
                "failed, see the trainer's log"
            )
        tq.kv_clear(keys=sorted(set(batch.keys) - set(remaining)), partition_id=partition_id)
        return batch.select_keys(remaining), sum(baselines.values()) / len(baselines)


class WatchedReplayBuffer(Watched, adapter().ReplayBuffer):  # type: ignore[misc]
    """For trainers whose completions are all sampled with the newest weights."""


class WatchedAsyncReplayBuffer(Watched, adapter().ReplayBufferAsync):  # type: ignore[misc]
    """For trainers that sample while they train.

    verl drops groups that span more weight versions than `max_off_policy_threshold`, and failed and
    uniform ones, and dispatches as many new problems.
    """

    def _before_batch(self, step: int) -> dict[str, float]:
        if not self.step:
            _clear_trained()
        return super()._before_batch(step)

    def on_selected(self, versions: list[int]) -> None:
        self.ages = [self.step - version for version in versions]

    def sample(self, *args: Any, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        """Add how many weight versions lie between the batch's dispatch and this step."""
        batch, metrics = super().sample(*args, **kwargs)
        if batch.partition_id == "val":
            return batch, metrics
        return batch, metrics | {STALE_MEAN: fmean(self.ages), STALE_MAX: float(max(self.ages))}


def _clear_trained() -> None:
    """Remove the completions that a save holds of its own step, which a resume does not need.

    verl saves before it removes them. Their prompts are gone, so it would keep them for ever.
    """
    tags = (tq.kv_list(partition_id="train") or {}).get("train", {})
    prompts = {key for key, tag in tags.items() if tag.get("is_prompt", False)}
    trained = [key for key in tags if key.split("_")[0] not in prompts]
    if trained:
        tq.kv_clear(keys=trained, partition_id="train")


def _last_fault() -> str:
    recorded = faults.read(_job_folder())
    return str(recorded[-1]) if recorded else "see the trainer's log"


def _job_folder() -> Path:
    """Return the folder of verl's metrics file, which callback.py sets in the trainer's process."""
    return Path(os.environ["VERL_FILE_LOGGER_PATH"]).parent


def keys_of_small_groups(keys: Sequence[str], least: int) -> set[str]:
    """Return the keys (`prompt_session_index`) of prompts with fewer sessions than `least`."""
    sessions = Counter(
        prompt for prompt, _ in {(key.rsplit("_", 2)[0], key.rsplit("_", 2)[1]) for key in keys}
    )
    return {key for key in keys if sessions[key.rsplit("_", 2)[0]] < least}
