"""One real training of three steps, with all that changes a training step by step.

It has a curriculum of problems and one of lengths, an entropy target, and weights by tag. Each test
reads what one of them wrote.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from statistics import fmean

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

from artifacts.tensors import weights_hash
from rewards.config import RewardConfig
from rewards.watch import OTHER
from tests.verl_jobs.real_trainings import run
from tests.verl_jobs.test_curriculum_dataset import BATCH, ROOT, write_rows
from verl_jobs import samples
from verl_jobs.config.answer_stages import AnswerStage
from verl_jobs.config.curriculum import Curriculum
from verl_jobs.config.training import Training
from verl_jobs.curriculum import draws
from verl_jobs.job import TrainingJob, candidates, metrics
from verl_jobs.samples import CUT
from verl_jobs.trainer.checkpoints import STATE, restore_settings
from verl_jobs.trainer.entropy import CHANGE, WEIGHT

TAG = "num"  # of a third of the problems


def a_job(folder: Path, training: Training, reward: RewardConfig) -> TrainingJob:
    rows = write_rows(folder)
    return TrainingJob(
        folder=str(folder / "job"),
        run_id="c",
        start=str(rows / "model"),
        train=str(rows / "train.parquet"),
        validation=str(rows / "validation.parquet"),
        inputs={},
        training=training,
        reward=reward,
        reward_hash="",
        isolation="auto",
        seed=5,
    )


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> TrainingJob:
    """Train an untrained model with the curriculum of the example, and two stages of lengths."""
    example = (ROOT / "examples" / "curriculum.yaml").read_text(encoding="utf-8")
    training = Training(
        threads=1,
        steps=3,
        save_every=1,
        problems_per_step=BATCH,
        group_size=2,
        answer_tokens=16,
        answer_stages=(AnswerStage(until=1, tokens=4), AnswerStage(until=2, tokens=8)),
        curriculum=Curriculum.model_validate(yaml.safe_load(example)["training"]["curriculum"]),
        entropy_target=20.0,
    )
    reward = RewardConfig.model_validate({"by": {TAG: {"format": 0.0}}})
    job = a_job(tmp_path_factory.mktemp("short"), training, reward)
    run(job)
    return job


@pytest.fixture(scope="module")
def steps(job: TrainingJob) -> list[dict[str, float]]:
    """Return the metrics of the three steps."""
    return [row for row in metrics(job.path) if row["step"] > 0]


pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def test_completions_are_as_long_as_the_stage_of_their_step_allows(
    steps: list[dict[str, float]],
) -> None:
    """An untrained model rarely generates the end token."""
    from verl_jobs.trainer.replay_buffer import LIMIT

    assert [row[LIMIT] for row in steps] == [4, 8, 16]
    assert [row["response_length/max"] for row in steps] == [4, 8, 16]
    assert all(row[CUT] > 0.5 for row in steps)


def test_each_completion_names_the_weights_that_sampled_it(job: TrainingJob) -> None:
    """Those of the start, then of the checkpoint of the step before."""
    named = [{each.weights for each in samples.read(job.path, step)} for step in (1, 2, 3)]
    assert named[0] == {weights_hash(Path(job.start))}
    saved = candidates(job.path)
    assert {step: named[step] for step in (1, 2) if step in saved} == {
        step: {weights_hash(path)} for step, path in saved.items() if step < 3
    }
    assert len(set.union(*named)) == 3


def test_a_training_follows_its_curriculum_and_saves_its_table(
    job: TrainingJob, steps: list[dict[str, float]]
) -> None:
    import torch

    batches = [draws.read(job.path, step) for step in range(1, 4)]
    for step, batch in enumerate(batches, 1):
        assert {draw.problem_id for draw in batch} == {
            sample.problem_id for sample in samples.read(job.path, step)
        }
        assert [draw.n for draw in batch] == [2] * BATCH
    assert all(
        row["curriculum/pass_rate"] == pytest.approx(np.mean([d.pass_rate for d in batch]))
        for row, batch in zip(steps, batches, strict=True)
    )
    state = torch.load(job.path / "saves" / "global_step_3" / "data.pt", weights_only=False)[
        "dataset_state"
    ]
    assert (state["step"], state["draws"]) == (3, 3)
    assert state["failed"].sum() + state["passed"].sum() == pytest.approx(3 * 2 * BATCH, rel=0.2)


def test_below_the_target_the_weight_of_the_entropy_rises_with_each_step_and_is_saved(
    job: TrainingJob, steps: list[dict[str, float]]
) -> None:
    assert [row[WEIGHT] for row in steps] == pytest.approx([CHANGE, 2 * CHANGE, 3 * CHANGE])
    # all rewards of an untrained model are equal: the entropy alone changes its weights
    assert all(row["actor/grad_norm"] > 0 and row["actor/entropy_loss"] > 0 for row in steps)
    saved = job.path / "saves" / "global_step_3" / STATE
    assert json.loads(saved.read_text()) == {"entropy_coefficient": pytest.approx(3 * CHANGE)}
    assert restore_settings(job, 3).training.entropy_coefficient == pytest.approx(3 * CHANGE)


def test_each_domain_has_metrics_of_its_own(
    job: TrainingJob, steps: list[dict[str, float]]
) -> None:
    tags = {
        row["problem_id"]: row["tags"] for row in pq.read_table(job.train)["extra_info"].to_pylist()
    }
    seen = set[str]()
    for number, row in enumerate(steps, 1):
        expected = dict[str, list[float]]()
        for sample in samples.read(job.path, number):
            tag = job.reward.domain(tags[sample.problem_id]) or OTHER
            expected.setdefault(tag, []).append(sample.reward)
        seen |= set(expected)
        for tag, rewards in expected.items():
            assert row[f"domain/{tag}/reward"] == pytest.approx(fmean(rewards))
            assert row[f"domain/{tag}/solved"] == 0.0  # the model is untrained
    assert seen == {TAG, OTHER}


@pytest.mark.soak
@pytest.mark.timeout(1500)
def test_a_resumed_training_repeats_its_draws_and_weights(tmp_path: Path) -> None:
    training = Training(
        threads=1,
        steps=4,
        save_every=2,
        problems_per_step=BATCH,
        group_size=2,
        answer_tokens=16,
        curriculum=Curriculum(schedule="window"),
    )
    job = a_job(tmp_path, training, RewardConfig())

    def drawn() -> list[list[draws.Draw]]:
        run(job)
        return [draws.read(job.path, step) for step in range(1, job.training.steps + 1)]

    batches, weights = drawn(), job.path / "candidates" / "step-000004" / "model.safetensors"
    learned = weights.read_bytes()
    (job.path / "done.json").unlink()
    for lost in (job.path / "saves" / "global_step_4", weights.parent, job.path / "draws"):
        shutil.rmtree(lost)
    assert drawn()[2:] == batches[2:]
    assert weights.read_bytes() == learned
