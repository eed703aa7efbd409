"""What makes verl's checkpoints safe against a kill at any moment, and candidates of them that others can read.

verl writes model, optimizer, RNG and dataloader state, then the name of the step into `latest_checkpointed_iteration.txt`: no rename, no fsync.
So a step counts only once its `whole` marker is there; before each start the tracker is set to the newest such step.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

from artifacts.hashing import hash_folder
from artifacts.manifest import NAME, Manifest
from artifacts.store import write_atomic
from verl_jobs.job import TrainingJob, candidates, next_attempt

MARKER = "whole"
TRACKER = "latest_checkpointed_iteration.txt"
KEEP = 2  # saves: one to go on from, and the one before it


def whole_saves(saves: Path) -> list[int]:
    """Steps of all saves that were finished, ascending."""
    found = (re.fullmatch(r"global_step_(\d+)", path.parent.name) for path in saves.glob(f"global_step_*/{MARKER}"))
    return sorted(int(match.group(1)) for match in found if match)


def repair(saves: Path) -> int | None:
    """Before a start: drops half-written saves and points verl's tracker at the newest whole one, whose step is returned (None: from the start)."""
    whole = whole_saves(saves)
    for folder in saves.glob("global_step_*"):
        if not (folder / MARKER).exists():
            shutil.rmtree(folder)
    if not whole:
        (saves / TRACKER).unlink(missing_ok=True)
        return None
    write_atomic(saves / TRACKER, str(whole[-1]))
    return whole[-1]


def sync(folder: Path) -> None:
    """Flushes every file below to disk: the marker must not outlive the bytes it stands for."""
    for path in folder.rglob("*"):
        if path.is_file():
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def publish_candidate(job: TrainingJob, step: int, weights: Path) -> Path:
    """Copies a Hugging Face folder beside, hashes it, and renames it into place with its manifest. Done once a step, whatever happens between."""
    target = job.path / "candidates" / f"step-{step:06d}"
    if (target / NAME).exists():
        return target
    beside = target.with_name(f".{target.name}")
    shutil.rmtree(beside, ignore_errors=True)
    shutil.copytree(weights, beside)
    manifest = Manifest(
        kind="checkpoints",
        name=f"{job.chain}-step-{step}",
        key=f"{job.key}-{step}",
        content_hash=hash_folder(beside),
        inputs=job.inputs | {"reward": job.reward_hash},
        config=job.training.model_dump(mode="json"),
        seed=job.seed,
        facts={"step": step, "battery": job.battery},
        isolation=job.isolation,
    ).stamped()
    write_atomic(beside / NAME, manifest.model_dump_json(indent=1))
    sync(beside)
    beside.replace(target)
    return target


def prune(saves: Path) -> None:
    """Keeps the newest whole saves."""
    for step in whole_saves(saves)[:-KEEP]:
        folder = saves / f"global_step_{step}"
        (folder / MARKER).unlink()
        shutil.rmtree(folder)


class PublishCandidate:
    """verl's `trainer.checkpoint_callback_class` (verl/trainer/ppo/checkpoint_callback.py): runs after each save.

    What it raises ends the training: a checkpoint that could not be made safe is none.
    """

    def __init__(self, config: Any = None) -> None:
        self.job = TrainingJob.read(Path(config.trainer.default_local_dir).parent / "job.json")
        # verl makes this object in the trainer's process, before its loggers read these.
        os.environ["VERL_FILE_LOGGER_PATH"] = str(self.job.path / f"metrics-{next_attempt(self.job.path):03d}.jsonl")
        os.environ["WANDB_DIR"] = str(self.job.path)
        if self.job.tracking_uri:
            os.environ["MLFLOW_TRACKING_URI"] = self.job.tracking_uri

    def on_save(self, trainer: Any, global_step: int, checkpoint_dir: str, async_save: bool = False, **_: Any) -> None:
        save = Path(checkpoint_dir)
        publish_candidate(self.job, global_step, save / "actor" / "huggingface")
        sync(save)
        write_atomic(save / MARKER, str(global_step))
        prune(save.parent)


def best(folder: Path, scores: dict[int, float]) -> tuple[int, Path]:
    """The candidate with the best validation score, the earlier one of equals. Raises LookupError when none was scored."""
    scored = {step: path for step, path in candidates(folder).items() if step in scores}
    if not scored:
        raise LookupError(f"{folder}: no candidate has a validation score: the run saved nothing; its log is beside it")
    step = max(scored, key=lambda step: (scores[step], -step))
    return step, scored[step]
