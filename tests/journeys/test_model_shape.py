"""A model of a real shape on the GPU profile's path, with the CPU's engine and device.

Qwen2.5-Coder-0.5B's configuration with random weights and a small tokenizer of its own: two ranks
over gloo, FSDP2, bf16, the profile's training but for its lengths. It is killed once after its
first save. It needs about 20 GiB of free memory.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.benchmarks import heldout
from evaluation.evaluate import evaluate
from evaluation.sampling import Sampling
from problems.dataset.rl_parquet import write_verl
from problems.embedded.compositional import generate
from problems.embedded.settings import FamilyConfig
from resources.config.load import load_profile
from rewards.composite import reward_hash
from sandbox.sandbox import Sandbox
from tests.journeys.one_kill import train_with_a_kill
from verl_jobs.config.training import Training
from verl_jobs.job import TrainingJob, candidates, metrics
from verl_jobs.planner.shapes import QWEN, SHAPES
from verl_jobs.sft.tiny_model import train_tokenizer
from verl_jobs.trainer.export import INDEX

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3000)]
HERE = {  # what the profile leaves to the machine and to the problems
    "engine": "hf",
    "ranks": 2,
    "threads": 1,
    "steps": 2,
    "save_every": 1,
    "warm_up_steps": 1,
    "problems_per_step": 2,
    "group_size": 2,
    "prompt_tokens": 160,
    "answer_tokens": 16,
    "entropy_coefficient": 0.01,  # all rewards are equal: without it no weight would change
}
SHAPE = SHAPES[f"{QWEN}0.5B"]
SCALE = {"precision": "bf16", "activation_checkpointing": True, "micro_batch_tokens": 512}


def random_model(folder: Path) -> int:
    """Write the model with a small tokenizer of its own; return its number of parameters."""
    import torch
    from transformers import AutoModelForCausalLM, Qwen2Config

    config = Qwen2Config(
        vocab_size=SHAPE.vocabulary,
        hidden_size=SHAPE.hidden,
        intermediate_size=SHAPE.intermediate,
        num_hidden_layers=SHAPE.layers,
        num_attention_heads=SHAPE.heads,
        num_key_value_heads=SHAPE.kv_heads,
        tie_word_embeddings=True,
    )
    model: Any = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.save_pretrained(folder)
    train_tokenizer(["def solve(x):\n    return x"], 512).save_pretrained(folder)
    return sum(parameter.numel() for parameter in model.parameters())


def updated(folder: Path) -> list[int]:
    """Return the steps that changed weights, in the order in which they were run."""
    return [row["step"] for row in metrics(folder) if row.get("actor/grad_norm", 0.0) > 0]


def test_the_shape_of_half_a_billion_parameters_trains_resumes_and_is_scored(
    tmp_path: Path,
) -> None:
    assert random_model(tmp_path / "start") == SHAPE.parameters
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
        run_id="shape",
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
    assert train_with_a_kill(job) == 1
    assert 2 in updated(tmp_path)
    candidate = candidates(tmp_path)[2]
    index = json.loads((candidate / INDEX).read_text())
    assert len(set(index["weight_map"].values())) == 2  # each rank wrote a file, in bf16
    assert index["metadata"]["total_size"] == 2 * SHAPE.parameters
    with Sandbox(profile.sandbox) as sandbox:
        benchmark = heldout(splits["validation"], Sampling(max_new_tokens=8))
        card = evaluate(candidate, "shape", "", benchmark, sandbox)
    assert len(card.samples) == 2
    assert {each.verdict for each in card.samples}.isdisjoint({"INFRA"})
