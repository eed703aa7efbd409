"""Make the folder of a training as verl and our callback write it, with weights of a few bytes."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from omegaconf import OmegaConf

from verl_jobs.job import VALIDATION, TrainingJob
from verl_jobs.trainer.callback import AfterSave
from verl_jobs.trainer.checkpoints import publish_candidate, seal_save

ADAPTED = {  # the layers of a model that get adapters
    "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj",
}  # fmt: skip

SHARD = "actor/model_world_size_1_rank_0.pt"


def a_save(folder: Path, step: int, *, whole: bool = True) -> Path:
    """Make `saves/global_step_N` in the folder of a training."""
    save = folder / "saves" / f"global_step_{step}"
    (save / "actor" / "huggingface").mkdir(parents=True)
    (save / "actor" / "huggingface" / "model.safetensors").write_bytes(bytes([step]))
    (save / SHARD).write_bytes(bytes([step]) * 1000)
    (save / "data.pt").write_bytes(b"where the data loader stood")
    if whole:
        seal_save(save)
    return save


def published(job: TrainingJob, step: int) -> Path:
    """Make a whole save and its candidate, in the order of the callback; return the candidate."""
    save = a_save(job.path, step, whole=False)
    candidate = publish_candidate(job, step, save / "actor" / "huggingface")
    seal_save(save)
    return candidate


def scored(folder: Path, scores: dict[int, float]) -> None:
    """Write verl's metrics file of one attempt with these validation scores."""
    lines = [
        json.dumps({"step": step, "data": {VALIDATION: score}}) for step, score in scores.items()
    ]
    (folder / "metrics-001.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def save_as_verl(job: TrainingJob, steps: list[int], kl: float | None = None) -> AfterSave:
    """Write the job's folder and mirror as after checkpoints at these steps."""
    job.write()
    with pytest.MonkeyPatch.context() as patch:
        for name in (
            "VERL_FILE_LOGGER_PATH",
            "WANDB_DIR",
            "WANDB_MODE",
            "WANDB_TAGS",
            "MLFLOW_RUN_CONTEXT",
        ):  # the callback sets them for verl
            patch.setenv(name, "")
        callback = AfterSave(
            OmegaConf.create(
                {
                    "trainer": {
                        "default_local_dir": str(job.path / "saves"),
                        "save_freq": 5,
                        "test_freq": 5,
                    }
                }
            )
        )
    trainer = (
        SimpleNamespace(kl_ctrl_in_reward=SimpleNamespace(value=kl)) if kl else SimpleNamespace()
    )
    for step in steps:
        callback.on_save(trainer, step, str(a_save(job.path, step, whole=False)))
    callback.await_save()
    return callback
