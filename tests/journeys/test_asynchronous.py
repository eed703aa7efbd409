"""Asynchronous training: two ranks train while an engine in other processes generates."""

from __future__ import annotations

from pathlib import Path

import pytest

from resources.config.profile import Profile
from tests.journeys.test_examples import train_tiny
from verl_jobs.config.scale import Scale
from verl_jobs.config.training import Training
from verl_jobs.job import candidates, metrics
from verl_jobs.trainer.checkpoints import complete_saves
from verl_jobs.trainer.replay_buffer import STALE_MAX, STALE_MEAN

VERSIONS, CAP = 3, 2.0  # weight versions that a batch may span, its own included


@pytest.mark.soak
@pytest.mark.timeout(2400)
def test_an_asynchronous_training_learns_from_stale_completions(tmp_path: Path) -> None:
    scale = Scale(placement="separate_async", engine_gpus=1, weight_versions=VERSIONS, updates=2)
    training = Training(
        ranks=2, threads=1, steps=4, save_every=2, problems_per_step=8, group_size=4,
        importance_cap=CAP, entropy_coefficient=0.01, scale=scale,
    )  # fmt: skip
    job = train_tiny(training, Profile().reward, tmp_path)
    rows = [row for row in metrics(job.path) if STALE_MEAN in row]
    assert [row["step"] for row in rows] == [1, 2, 3, 4]
    assert all(0 <= row[STALE_MEAN] <= row[STALE_MAX] < VERSIONS for row in rows)
    assert any(row[STALE_MEAN] > 0 for row in rows), "every batch was sampled by its own weights"
    assert all(0 < row["rollout_corr/rollout_is_max"] <= CAP for row in rows)
    assert all(row["actor/grad_norm"] > 0 for row in rows)
    assert list(candidates(job.path)) == [2, 4] == complete_saves(job.path / "saves")
