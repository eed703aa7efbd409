"""The profile `gpu` on a CPU, on a model of Qwen2.5-Coder-0.5B's shape: everything but the engine
and the device.

The weights are random and the tokenizer is made here. The model has the width and the vocabulary of
the real one, and LAYERS of its 24 layers: two ranks with all of them, their two engines and a save
need more than 24 GiB.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluation.benchmarks import heldout
from evaluation.evaluate import evaluate
from evaluation.sampling import Sampling
from problems.dataset.rl_parquet import write_verl
from problems.prompt import prompt_text
from problems.schema import Problem
from problems.sources.compositional import FamilyConfig, generate
from resources.config.load import load_profile
from rewards.composite import reward_hash
from sandbox.sandbox import Sandbox
from tests.journeys.demo_run import wait_until
from tests.journeys.test_examples import TRAIN
from verl_jobs.config.training import Training
from verl_jobs.job import TrainingJob, candidates, metrics
from verl_jobs.planner.shapes import SHAPES
from verl_jobs.sft.tiny_model import train_tokenizer
from verl_jobs.trainer.checkpoints import complete_saves
from verl_jobs.trainer.trainer_lease import lock_holder

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3000)]
ROOT = Path(__file__).parents[2]
SHAPE = SHAPES["Qwen/Qwen2.5-Coder-0.5B"]
LAYERS = 2
TOKENS = 151_665  # of the real tokenizer; the vocabulary is padded to 151,936


def make_model(texts: list[str], folder: Path) -> None:
    """Write a randomly initialised model with a tokenizer of the real one's size."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, Qwen2Config

    train_tokenizer(texts, 2000).save_pretrained(folder)
    path = folder / "tokenizer.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    taken = len(data["model"]["vocab"])
    data["model"]["vocab"] |= {f"unused{number}": number for number in range(taken, TOKENS)}
    path.write_text(json.dumps(data), encoding="utf-8")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert len(tokenizer) == TOKENS
    config = Qwen2Config(
        vocab_size=SHAPE.vocabulary,
        hidden_size=SHAPE.hidden,
        intermediate_size=SHAPE.intermediate,
        num_hidden_layers=LAYERS,
        num_attention_heads=SHAPE.heads,
        num_key_value_heads=SHAPE.kv_heads,
        max_position_embeddings=32_768,
        tie_word_embeddings=SHAPE.tied,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    torch.manual_seed(1)
    AutoModelForCausalLM.from_config(config, dtype=torch.float32).save_pretrained(folder)


def on_a_cpu() -> Training:
    """Return the profile's training with another engine, two ranks and less of everything.

    A random model solves nothing, so that all advantages are 0: the gradient is the entropy's.
    """
    training = load_profile("gpu").training
    small = {
        "engine": "hf", "ranks": 2, "threads": 1, "steps": 2, "save_every": 1,
        "warm_up_steps": 0, "problems_per_step": 4, "group_size": 2, "prompt_tokens": 400,
        "answer_tokens": 16, "entropy_coefficient": 0.01,
        "scale": training.scale.model_dump() | {"micro_batch_tokens": 512},
    }  # fmt: skip
    return Training.model_validate(training.model_dump() | small)


@pytest.fixture(scope="module")
def problems() -> list[Problem]:
    return generate(FamilyConfig(demonstrations=1, train=8, validation=2, heldout=2))


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory, problems: list[Problem]) -> Iterator[TrainingJob]:
    """Return a training of two steps whose trainer was killed after the first one's save."""
    folder, reward = tmp_path_factory.mktemp("shape"), load_profile("gpu").reward
    make_model([prompt_text(problem) for problem in problems], folder / "start")
    for split in ("train", "validation"):
        chosen = [problem for problem in problems if problem.split == split]
        write_verl(chosen, folder / f"{split}.parquet")
    job = TrainingJob(
        folder=str(folder), chain="shape", start=str(folder / "start"),
        train=str(folder / "train.parquet"), validation=str(folder / "validation.parquet"),
        inputs={}, training=on_a_cpu(), reward=reward, reward_hash=reward_hash(reward),
        isolation="auto", seed=1,
    )  # fmt: skip
    program = TRAIN.replace("attempts=1", "attempts=3")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    owner = subprocess.Popen([sys.executable, "-c", program, str(job.write())], env=environment)
    wait_until(lambda: 1 in complete_saves(folder / "saves") or owner.poll() is not None, 1200)
    assert owner.poll() is None, (folder / "trainer.log").read_text()[-3000:]
    trainer = lock_holder(folder)
    assert trainer is not None
    os.kill(trainer, signal.SIGKILL)
    assert owner.wait(1200) == 0, (folder / "trainer.log").read_text()[-3000:]
    yield job


def test_a_step_has_rollouts_rewards_and_an_update(job: TrainingJob) -> None:
    [first] = [row for row in metrics(job.path) if row["step"] == 1]
    assert first["perf/total_num_tokens"] > 8 * 16
    assert first["actor/grad_norm"] > 0 and "critic/score/mean" in first


def test_the_killed_training_resumes_from_its_save(job: TrainingJob) -> None:
    assert job.done is not None and metrics(job.path)[-1]["step"] == 2
    log = (job.path / "trainer.log").read_text(encoding="utf-8", errors="replace")
    assert "global_step_1" in log and len(list(job.path.glob("metrics-*.jsonl"))) == 2
    names = {path.name for path in (job.path / "saves").glob("global_step_2/actor/model_*.pt")}
    assert names == {f"model_world_size_2_rank_{rank}.pt" for rank in range(2)}


def test_the_candidate_has_the_model_s_shape_and_is_scored(
    job: TrainingJob, problems: list[Problem]
) -> None:
    folder = candidates(job.path)[2]
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert (config["hidden_size"], config["vocab_size"]) == (SHAPE.hidden, SHAPE.vocabulary)
    benchmark = heldout(problems, Sampling(max_new_tokens=16))
    with Sandbox() as sandbox:
        card = evaluate(folder, "shape", "hash", benchmark, sandbox)
    assert len(card.samples) == 2
