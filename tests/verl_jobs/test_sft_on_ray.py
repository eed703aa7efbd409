"""Supervised training by verl's SFT trainer, as a job on the Ray that trains."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.config.load import load_profile
from resources.ray import private as private_ray
from resources.ray.job import train
from resources.ray.private import Private
from tests.verl_jobs.test_job import a_job
from verl_jobs.config.training import Training
from verl_jobs.job import TrainingJob
from verl_jobs.sft import entry
from verl_jobs.sft.tiny_model import TinyModel, make
from verl_jobs.sft.verl_overrides import sft_overrides
from verl_jobs.sft.warm_up import WarmUp

ROOT = Path(__file__).resolve().parents[2]
CHATS = [
    ("sort the numbers", "def solve(x):\n    return sorted(x)"),
    ("add them up", "def solve(x):\n    return sum(x)"),
] * 8
CONFIG = WarmUp(steps=8, batch=8, optimizer="adamw", learning_rate=5e-3, schedule="constant")


def test_the_layout_is_that_of_the_training(tmp_path: Path) -> None:
    profile = load_profile("gpu-8x80gb")
    job = a_job(tmp_path, training=profile.training)
    lines = sft_overrides(job, profile.warm_up, tmp_path / "r.parquet", 100)
    assert {
        "trainer.n_gpus_per_node=8",
        "data.max_token_len_per_gpu=36864",
        "engine.strategy=fsdp2",
        "model.enable_gradient_checkpointing=True",
        "+engine.mixed_precision={param_dtype:bf16,reduce_dtype:fp32,buffer_dtype:fp32}",
        "data.train_batch_size=16",
    } <= set(lines)


@pytest.mark.parametrize(
    ("config", "rows", "error"),
    [(CONFIG, 1, "1 demonstrations for 2 ranks"), (WarmUp(optimizer="muon"), 9, "no muon: adamw")],
)
def test_what_verl_s_trainer_cannot_do_is_refused(
    tmp_path: Path, config: WarmUp, rows: int, error: str
) -> None:
    job = a_job(tmp_path, training=Training(ranks=2, problems_per_step=4, group_size=4))
    with pytest.raises(ValueError, match=error):
        sft_overrides(job, config, tmp_path / "r.parquet", rows)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrainingJob]:
    """Return a finished job of two ranks on a private Ray."""
    folder = tmp_path_factory.mktemp("sft")
    texts = [text for pair in CHATS for text in pair]
    make(TinyModel(hidden=32, layers=2, vocabulary=300), texts, folder / "base")
    training = Training(ranks=2, problems_per_step=4, group_size=4, threads=1)
    job = a_job(folder / "job", start=str(folder / "base"), training=training)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH"):  # set for this process by Private
            patch.setenv(name, "")
        private_ray.ensure_head(folder / "ray", job)
        entry.write_inputs(job, CONFIG, CHATS)
        train(job, Private(folder / "ray", job), entry=entry.__name__, attempts=1)
        yield job
        os.kill(json.loads((folder / "ray" / "head.json").read_text())["pid"], signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.timeout(500)
def test_two_ranks_learn_the_demonstrations(trained: TrainingJob) -> None:
    losses = entry.losses(trained)
    assert len(losses) == CONFIG.steps
    assert losses[-1] < losses[0] - 0.5


@pytest.mark.slow
@pytest.mark.timeout(500)
def test_the_result_is_a_model_that_training_can_start_from(trained: TrainingJob) -> None:
    from verl_jobs.sft.start import check_start

    check_start(trained.path / entry.WEIGHTS, tokens=128)
    assert trained.done is not None
