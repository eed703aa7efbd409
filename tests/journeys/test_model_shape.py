"""A model of a real shape on the GPU profile's path, with the CPU's engine and device.

Qwen2.5-Coder-0.5B's configuration with random weights and a small tokenizer of its own: two ranks
over gloo, FSDP2, bf16, the profile's training but for its lengths. It is killed once after its
first save.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from evaluation.benchmarks import heldout
from evaluation.evaluate import evaluate
from evaluation.sampling import Sampling
from measurements.saves import SHAPE, random_model
from problems.dataset.rl_parquet import write_verl
from problems.sources.compositional import FamilyConfig, generate
from resources.config.load import load_profile
from rewards.composite import reward_hash
from sandbox.sandbox import Sandbox
from tests.journeys.demo_run import wait_until
from tests.journeys.test_examples import ROOT
from verl_jobs.config.training import Training
from verl_jobs.job import TrainingJob, candidates, metrics
from verl_jobs.trainer.checkpoints import complete_saves
from verl_jobs.trainer.export import INDEX
from verl_jobs.trainer.trainer_lease import lock_holder

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3000)]
HERE = {  # what the profile leaves to the machine and to the problems
    "engine": "hf",
    "ranks": 2,
    "threads": 1,
    "steps": 2,
    "save_every": 1,
    "problems_per_step": 2,
    "group_size": 2,
    "prompt_tokens": 160,
    "answer_tokens": 16,
    "entropy_coefficient": 0.01,  # all rewards are equal: without it no weight would change
}
SCALE = {"precision": "bf16", "activation_checkpointing": True, "micro_batch_tokens": 512}
TRAIN = """
import sys
from pathlib import Path
from resources.ray.private import Private
from resources.ray.job import train
from verl_jobs.job import TrainingJob
job = TrainingJob.read(Path(sys.argv[1]))
train(job, Private(job.path / "ray", job), attempts=2)
"""


def updated(folder: Path) -> list[int]:
    """Return the steps that changed weights, in the order in which they were run."""
    return [row["step"] for row in metrics(folder) if row.get("actor/grad_norm", 0.0) > 0]


def test_the_shape_of_half_a_billion_parameters_trains_resumes_and_is_scored(
    tmp_path: Path,
) -> None:
    assert random_model(tmp_path / "start", SHAPE.layers) == SHAPE.parameters
    problems = generate(FamilyConfig(demonstrations=1, train=8, validation=2))
    splits = {
        split: [each for each in problems if each.split == split]
        for split in ("train", "validation")
    }
    for split, rows in splits.items():
        write_verl(rows, tmp_path / f"{split}.parquet")
    profile = load_profile("gpu")
    training = Training.model_validate(
        profile.training.model_dump()
        | HERE
        | {"scale": profile.training.scale.model_dump() | SCALE}
    )
    job = TrainingJob(
        folder=str(tmp_path),
        chain="shape",
        start=str(tmp_path / "start"),
        train=str(tmp_path / "train.parquet"),
        validation=str(tmp_path / "validation.parquet"),
        inputs={},
        training=training,
        reward=profile.reward,
        reward_hash=reward_hash(profile.reward),
        isolation="auto",
        seed=1,
    )
    command = [sys.executable, "-c", TRAIN, str(job.write())]
    with (tmp_path / "owner.log").open("wb") as log:
        owner = subprocess.Popen(
            command, env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=log, stderr=log
        )
        wait_until(
            lambda: complete_saves(tmp_path / "saves") == [1] or owner.poll() is not None, 1800
        )
        trainer = lock_holder(tmp_path)
        assert trainer is not None, (tmp_path / "owner.log").read_text()[-3000:]
        os.kill(trainer, signal.SIGKILL)
        assert owner.wait() == 0, (tmp_path / "owner.log").read_text()[-3000:]
    assert 2 in updated(tmp_path)
    assert len(list(tmp_path.glob("metrics-*.jsonl"))) == 2
    candidate = candidates(tmp_path)[2]
    index = json.loads((candidate / INDEX).read_text())
    assert len(set(index["weight_map"].values())) == 2  # each rank wrote a file, in bf16
    assert index["metadata"]["total_size"] == 2 * SHAPE.parameters
    with Sandbox(profile.sandbox) as sandbox:
        benchmark = heldout(splits["validation"], Sampling(max_new_tokens=8))
        card = evaluate(candidate, "shape", "", benchmark, sandbox)
    assert len(card.samples) == 2 and {each.verdict for each in card.samples}.isdisjoint({"INFRA"})
