"""Asynchronous training: two ranks train while an engine in other processes generates."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from resources.config.profile import Profile
from tests.journeys.one_kill import train_with_a_kill
from tests.journeys.test_examples import tiny_job, train_tiny
from verl_jobs import samples
from verl_jobs.config.scale import ScaleSettings
from verl_jobs.config.training import Training
from verl_jobs.job import candidates, metrics
from verl_jobs.trainer.checkpoints import complete_saves

pytestmark = [pytest.mark.soak, pytest.mark.timeout(2400)]
VERSIONS, CAP = 3, 2.0  # weight versions that a batch may span, its own included
SCALE = ScaleSettings(
    placement="separate_async", engine_gpus=1, weight_versions=VERSIONS, updates=2
)
QUEUE = "transfer_queue"  # verl's folder in a save
PROBLEMS = 16  # of the tiny job


def test_an_asynchronous_training_learns_from_stale_completions(tmp_path: Path) -> None:
    from verl_jobs.trainer.replay_buffer import STALE_MAX, STALE_MEAN

    training = Training(
        ranks=2, threads=1, steps=4, save_every=2, problems_per_step=8, group_size=4,
        importance_cap=CAP, entropy_coefficient=0.01, scale=SCALE,
    )  # fmt: skip
    job = train_tiny(training, Profile().reward, tmp_path)
    rows = [row for row in metrics(job.path) if STALE_MEAN in row]
    assert [row["step"] for row in rows] == [1, 2, 3, 4]
    assert all(0 <= row[STALE_MEAN] <= row[STALE_MAX] < VERSIONS for row in rows)
    assert any(row[STALE_MEAN] > 0 for row in rows), "every batch was sampled by its own weights"
    assert all(0 < row["rollout_corr/rollout_is_max"] <= CAP for row in rows)
    assert all(row["actor/grad_norm"] > 0 for row in rows)
    assert list(candidates(job.path)) == [2, 4] == complete_saves(job.path / "saves")


def test_a_killed_training_continues_with_the_completions_of_its_save(tmp_path: Path) -> None:
    """Two steps take each problem once, so a prompt that is lost or trained on twice shows."""
    from verl_jobs.trainer.replay_buffer import STALE_MAX, STALE_MEAN

    training = Training(
        ranks=2, threads=1, steps=8, save_every=2, problems_per_step=PROBLEMS // 2, group_size=2,
        answer_tokens=48, entropy_coefficient=0.01, scale=SCALE,
    )  # fmt: skip
    job = tiny_job(training, Profile().reward, tmp_path)
    saved = train_with_a_kill(job)
    assert list((job.path / "saves").glob(f"*/{QUEUE}/*")), "no save of the queue"
    [_, resumed] = sorted(job.path.glob("metrics-*.jsonl"))
    rows = [json.loads(line) for line in resumed.read_text().splitlines()]
    steps = {row["step"]: row["data"] for row in rows if STALE_MEAN in row["data"]}
    assert list(steps) == list(range(saved + 1, training.steps + 1))
    assert all(0 <= row[STALE_MEAN] <= row[STALE_MAX] < VERSIONS for row in steps.values())
    assert steps[saved + 1][STALE_MEAN] > 0, "the completions of the save were not used"
    assert all("training/off_policy/evicted_samples" not in row for row in steps.values())
    trained = Counter(
        sample.problem_id
        for step in range(1, training.steps + 1)
        for sample in samples.read(job.path, step)
    )
    print(sorted(trained.values()))
    epochs = training.steps * training.problems_per_step // PROBLEMS
    assert len(trained) == PROBLEMS
    assert set(trained.values()) == {epochs * training.group_size}
    assert complete_saves(job.path / "saves")[-1] == training.steps
