"""One training run on disk: what it was told, what it did, what it made. The folder is the whole interface.

job.json                what it was told
metrics-<attempt>.jsonl verl's own metrics, a line a step (verl's file logger begins anew with each attempt)
messages.jsonl          Dagster Pipes messages
samples/step-000012.jsonl  what the policy wrote at a step (verl_jobs/samples.py)
saves/                  verl's checkpoints, to go on from
candidates/step-000010/ Hugging Face folders with a manifest, published whole
sweep.json              the run of a W&B sweep that it is, if it is one
stopped.json            why it ended early, if it did
lease, notice.json      that its owner lives, and that it is asked to end (verl_jobs/trainer/trainer_lease.py)
faults.jsonl            what went wrong and was got over (verl_jobs/faults.py)
done.json               written last
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, model_validator

from artifacts.hashing import hash_data
from artifacts.store import write_atomic
from rewards.composite import RewardConfig
from verl_jobs.config.training import Training

SWEEP = (
    "WANDB_SWEEP_ID",
    "WANDB_RUN_ID",
    "WANDB_SWEEP_PARAM_PATH",
    "WANDB_ENTITY",
    "WANDB_PROJECT",
)  # what a sweep's agent tells its command
VALIDATION = "val-core/embedded/acc/mean@1"


class TrainingJob(BaseModel):
    """What one run is told. Two jobs with the same `key` are the same work."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    folder: str
    chain: str
    start: str  # a Hugging Face folder, or a hub id on a GPU
    train: str  # parquet with verl's columns
    validation: str
    inputs: dict[str, str]  # name of each input -> content hash
    training: Training
    reward: RewardConfig
    reward_hash: str
    battery: str = ""  # what the exploit battery said of the reward; its hash where it passed
    isolation: Literal["auto", "root", "userns", "bare"]  # of the sandbox, as asked for
    backend: Literal["local", "docker", "ray"] = "local"  # of the sandbox
    seed: int
    tracking_uri: str = ""  # MLflow; empty: no MLflow logger
    store: str = (
        ""  # root of the object store that its saves are copied to, any fsspec URL; empty: none
    )

    @model_validator(mode="before")
    @classmethod
    def _of_an_older_file(cls, told: Any) -> Any:
        """Once a job said where its copies lie, and those that were made of it said the same place."""
        if not isinstance(told, dict) or "mirror" not in told:
            return told
        return {name: value for name, value in told.items() if name != "mirror"} | {
            "store": told["mirror"].rpartition("/trainings/")[0]
        }

    @property
    def key(self) -> str:
        told = self.model_dump(
            include={"chain", "inputs", "training", "reward", "reward_hash", "seed"}, mode="json"
        )
        return hash_data(told)

    @property
    def mirror(self) -> str:
        """Where copies of its saves go, a URL that no other work has; empty: nowhere."""
        return (
            f"{self.store.rstrip('/')}/trainings/{self.chain}/{self.key[:12]}" if self.store else ""
        )

    @property
    def tags(self) -> dict[str, str]:
        """What its runs in W&B and in MLflow are found by, the same in both."""
        told = {
            "chain": self.chain,
            "algorithm": self.training.algorithm,
            "seed": str(self.seed),
            "key": self.key[:12],
        }
        return told | {
            "start": self.inputs.get("start", "")[:12],
            "reward": self.reward_hash[:12],
            "battery": self.battery[:12] or "not run",
        }

    @property
    def path(self) -> Path:
        return Path(self.folder)

    def write(self) -> Path:
        target = self.path / "job.json"
        write_atomic(target, self.model_dump_json(indent=1))
        return target

    @classmethod
    def read(cls, path: Path) -> TrainingJob:
        return cls.model_validate_json(path.read_text(encoding="utf-8"))

    @property
    def done(self) -> dict[str, Any] | None:
        """What a finished run says of itself, None while it has not finished."""
        path = self.path / "done.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    @property
    def stopped(self) -> str:
        """Why the training ended before its last step; empty where it did not (verl_jobs/trainer/early_stop.py)."""
        path = self.path / "stopped.json"
        return str(json.loads(path.read_text(encoding="utf-8"))["reason"]) if path.exists() else ""

    def validations(self) -> dict[int, float]:
        """Validation score by step, of the steps at which the run was to be scored.

        A run that is stopped saves where it is, and is scored there when it goes on. That step is left out, so that it ends early, keeps and chooses
        as one that was never stopped; unless no other has been scored.
        """
        scored = {
            int(row["step"]): float(row[VALIDATION])
            for row in metrics(self.path)
            if VALIDATION in row
        }
        due = {
            step: score for step, score in scored.items() if step % self.training.save_every == 0
        }
        return due if any(due) else scored  # the start's alone, of step 0, chooses nothing


def candidates(folder: Path) -> dict[int, Path]:
    """Step -> published candidate, in order of steps. Half-written ones carry no manifest and are not seen."""
    found = {
        int(path.name.removeprefix("step-")): path
        for path in (folder / "candidates").glob("step-*")
        if (path / "manifest.json").exists()
    }
    return dict(sorted(found.items()))


def metrics(folder: Path) -> list[dict[str, Any]]:
    """One dictionary a step, in order, over all attempts: what a later attempt did again replaces what an earlier one said.

    A line torn by a kill is passed over. Each holds `step` and verl's own keys, and is not to be changed: files that have not grown are not read
    again.
    """
    found = [(path, path.stat()) for path in sorted(folder.glob("metrics-*.jsonl"))]
    return list(_read(tuple((path, about.st_size, about.st_mtime_ns) for path, about in found)))


@lru_cache(maxsize=8)
def _read(files: tuple[tuple[Path, int, int], ...]) -> list[dict[str, Any]]:
    """files: each with its size and time, by which it is known that it is the same."""
    steps: dict[int, dict[str, Any]] = {}
    for path, _, _ in files:
        for line in path.read_bytes().splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            step = int(record["step"])
            steps[step] = steps.get(step, {}) | record["data"] | {"step": step}
    return [steps[step] for step in sorted(steps)]


def next_attempt(folder: Path) -> int:
    return 1 + max(
        (int(path.stem.removeprefix("metrics-")) for path in folder.glob("metrics-*.jsonl")),
        default=0,
    )
