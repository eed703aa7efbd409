"""A training's folder as verl and our callback leave it, made in a moment: the layout is real, the weights are a few bytes."""

from __future__ import annotations

import json
from pathlib import Path

from verl_jobs.job import VALIDATION
from verl_jobs.saving import seal

SHARD = "actor/model_world_size_1_rank_0.pt"


def a_save(folder: Path, step: int, *, whole: bool = True) -> Path:
    """`saves/global_step_N` of the training in this folder."""
    save = folder / "saves" / f"global_step_{step}"
    (save / "actor" / "huggingface").mkdir(parents=True)
    (save / "actor" / "huggingface" / "model.safetensors").write_bytes(bytes([step]))
    (save / SHARD).write_bytes(bytes([step]) * 1000)
    (save / "data.pt").write_bytes(b"where the data loader stood")
    if whole:
        seal(save)
    return save


def scored(folder: Path, scores: dict[int, float]) -> None:
    """verl's metrics file of one attempt with these validation scores."""
    lines = [json.dumps({"step": step, "data": {VALIDATION: score}}) for step, score in scores.items()]
    (folder / "metrics-001.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
