"""Asynchronous training: two ranks train while an engine in other processes generates.

The trainer is killed once. Its saves hold the prompts and completions that were waiting.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from problems.dataset.rl_parquet import write_verl
from problems.prompt import prompt_text
from problems.sources.compositional import FamilyConfig, generate
from resources.config.profile import Profile
from rewards.composite import reward_hash
from tests.journeys.one_kill import train_with_a_kill
from verl_jobs.config.scale import Scale
from verl_jobs.config.training import Training
from verl_jobs.job import TrainingJob, candidates, metrics
from verl_jobs.sft.tiny_model import TinyModel, make
from verl_jobs.trainer.replay_buffer import STALE_MAX, STALE_MEAN

VERSIONS, CAP = 3, 2.0  # weight versions that a batch may span, its own included


@pytest.mark.soak
@pytest.mark.timeout(2400)
def test_a_killed_asynchronous_training_learns_from_stale_completions(tmp_path: Path) -> None:
    problems = generate(FamilyConfig(demonstrations=1, train=32, validation=4))
    make(TinyModel(), map(prompt_text, problems), tmp_path / "start")
    for split in ("train", "validation"):
        chosen = [problem for problem in problems if problem.split == split]
        write_verl(chosen, tmp_path / f"{split}.parquet")
    scale = Scale(placement="separate_async", engine_gpus=1, weight_versions=VERSIONS, updates=2)
    training = Training(
        ranks=2, threads=1, steps=6, save_every=2, problems_per_step=8, group_size=4,
        importance_cap=CAP, entropy_coefficient=0.01, scale=scale,
    )  # fmt: skip
    reward = Profile().reward
    job = TrainingJob(
        folder=str(tmp_path),
        chain="asynchronous",
        start=str(tmp_path / "start"),
        train=str(tmp_path / "train.parquet"),
        validation=str(tmp_path / "validation.parquet"),
        inputs={},
        training=training,
        reward=reward,
        reward_hash=reward_hash(reward),
        isolation="auto",
        seed=1,
    )
    before = train_with_a_kill(job)
    rows = [row for row in metrics(tmp_path) if STALE_MEAN in row]
    steps = [row["step"] for row in rows]
    assert set(steps) == set(range(1, 7)) and steps[-1] == 6 > before
    assert all(0 <= row[STALE_MEAN] <= row[STALE_MAX] < VERSIONS for row in rows)
    assert any(row[STALE_MEAN] > 0 for row in rows), "every batch was sampled by its own weights"
    assert all(0 < row["rollout_corr/rollout_is_max"] <= CAP for row in rows)
    assert all(row["actor/grad_norm"] > 0 for row in rows)
    assert 6 in candidates(tmp_path)
