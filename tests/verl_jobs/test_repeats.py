"""Real trainings of two steps: reproducible metrics, and adapters merged in checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from problems.dataset.rl_parquet import write_verl
from problems.demonstrations import demonstration
from problems.embedded.compositional import generate
from problems.embedded.settings import FamilyConfig
from problems.prompt import prompt_text
from resources.config.load import load_profile
from rewards.composite import reward_hash
from tests.verl_jobs.real_trainings import run
from tests.verl_jobs.saves import ADAPTED
from verl_jobs.config.lora import ADAPTER
from verl_jobs.config.training import Training
from verl_jobs.job import TrainingJob, candidates, metrics
from verl_jobs.sft.tiny_model import TinyModel, make
from verl_jobs.sft.warm_up import WarmUp, warm_up
from verl_jobs.trainer.rescaled import RAW

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]  # eight minutes on two cores
ROOT = Path(__file__).parents[2]
BETWEEN = (
    "rollout_corr/",
    "training/rollout_probs_diff",
)  # engine and trainer batch differently: 1e-8
CLOCK = ("timing", "perf/", "peak", "memory")  # parts of metric names that depend on the clock
SMALL = {"steps": 2, "save_every": 2, "problems_per_step": 8, "group_size": 4, "answer_tokens": 64}


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TrainingJob]:
    """Run each training twice from a warmed-up tiny model, all on one Ray."""
    home = tmp_path_factory.mktemp("repeats")
    problems = generate(FamilyConfig(demonstrations=300, train=16, validation=8))
    chats = [
        (prompt_text(problem), demonstration(problem))
        for problem in problems
        if problem.split == "demonstrations"
    ]
    make(TinyModel(hidden=64, layers=2), [text for pair in chats for text in pair], home / "base")
    warm_up(home / "base", chats, WarmUp(steps=240, threads=1), home / "start")
    for split in ("train", "validation"):
        write_verl(
            [problem for problem in problems if problem.split == split], home / f"{split}.parquet"
        )
    adapters = load_profile(str(ROOT / "examples" / "transfer.yaml")).training.model_dump() | {
        "reward_normalised": True,
        "reward_clip": 2.0,
    }
    trainings = {
        "grpo": Training(**SMALL),
        "ppo": Training(algorithm="ppo", **SMALL),
        "lora": Training.model_validate(adapters | SMALL),
    }
    reward, jobs = load_profile("small").reward, {}
    for name, training in [
        (f"{name}{again}", each) for name, each in trainings.items() for again in ("", "-again")
    ]:
        jobs[name] = TrainingJob(
            folder=str(home / name),
            run_id=name,
            start=str(home / "start"),
            train=str(home / "train.parquet"),
            validation=str(home / "validation.parquet"),
            inputs={},
            training=training,
            reward=reward,
            reward_hash=reward_hash(reward),
            isolation="auto",
            seed=7,
        )
    run(*jobs.values())
    return jobs


def measured(job: TrainingJob) -> list[dict[str, Any]]:
    """Return the metrics of each step without those that depend on the clock."""
    return [
        {key: value for key, value in row.items() if not any(word in key for word in CLOCK)}
        for row in metrics(job.path)
    ]


@pytest.mark.parametrize(
    "name", ["grpo", "ppo", "lora"]
)  # a value head and adapters are initialized
def test_the_same_seed_gives_the_same_metrics_and_weights(
    jobs: dict[str, TrainingJob], name: str
) -> None:
    first, again = jobs[name], jobs[f"{name}-again"]
    assert [row["step"] for row in measured(first)] == [0, 1, 2]
    assert any(row.get("actor/grad_norm", 0.0) > 0 for row in measured(first)), (
        "nothing was learned"
    )
    for before, after in zip(measured(first), measured(again), strict=True):
        differ = {
            key: (value, after.get(key)) for key, value in before.items() if after.get(key) != value
        }
        assert all(
            key.startswith(BETWEEN) and value == pytest.approx(now, abs=1e-6)
            for key, (value, now) in differ.items()
        ), differ
    one, other = (
        (candidates(job.path)[2] / "model.safetensors").read_bytes() for job in (first, again)
    )
    assert one == other


def test_adapters_are_trained_by_verl_and_published_merged(jobs: dict[str, TrainingJob]) -> None:
    import torch
    from peft import PeftModel
    from safetensors.torch import load_file
    from transformers import AutoModelForCausalLM

    job = jobs["lora"]
    candidate = candidates(job.path)[2]
    start, merged = (
        load_file(Path(job.start) / "model.safetensors"),
        load_file(candidate / "model.safetensors"),
    )
    changed = {
        name.rsplit(".", 2)[1] for name in start if not torch.equal(start[name], merged[name])
    }
    assert set(start) == set(merged)
    assert changed == ADAPTED
    ids = torch.tensor([[1, 5, 9, 33, 7]])
    base, alone = (
        AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        for folder in (job.start, candidate)
    )
    adapted: Any = PeftModel.from_pretrained(base, candidate / ADAPTER).eval()
    with torch.inference_mode():
        assert torch.allclose(alone.eval()(ids).logits, adapted(ids).logits, atol=1e-4)
    assert json.loads((candidate / "config.json").read_text())["architectures"] == [
        "Qwen2ForCausalLM"
    ]
    steps = [row for row in metrics(job.path) if RAW in row]
    assert len(steps) == 2
    assert all(-1 <= row[RAW] <= 1 and abs(row["critic/score/min"]) <= 2.0 for row in steps)
    assert all(row["critic/score/mean"] != pytest.approx(row[RAW]) for row in steps), (
        "verl learns from the rescaled rewards"
    )
    apart = [
        row["training/rollout_probs_diff_max"]
        for row in metrics(job.path)
        if "training/rollout_probs_diff_max" in row
    ]
    assert apart, "the engine samples from the trained policy with its adapter"
    assert max(apart) < 1e-4, "the engine samples from the trained policy with its adapter"
