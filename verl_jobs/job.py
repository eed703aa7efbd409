"""One training run on disk: its settings, logs and results. The folder is the whole interface.

Files and folders:

    job.json                  the settings
    metrics-<attempt>.jsonl   verl's metrics, one line per step; one file per attempt, because
                              verl's file logger starts a new file with each attempt
    messages.jsonl            Dagster Pipes messages
    samples/step-000012.jsonl completions of a step (verl_jobs/samples.py)
    saves/                    verl's checkpoints, to resume from
    candidates/step-000010/   Hugging Face folders with a manifest, published atomically
    sweep.json                the W&B sweep's run, if the training belongs to one
    stopped.json              why the training stopped early, if it did
    progress                  the phase that runs (verl_jobs/trainer/progress.py)
    lease, notice.json        the owner's lease, and the request to end
                              (verl_jobs/trainer/trainer_lease.py)
    faults.jsonl              faults that the training survived (verl_jobs/faults.py)
    done.json                 written last, with the hashes of metrics and samples
"""

from __future__ import annotations

import json
import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, PositiveInt

from artifacts.atomic import write_atomic
from artifacts.hashing import hash_data, hash_file
from artifacts.integrity import RESTORE, changed, check_files, reading, seal, unseal
from rewards.config import RewardConfig
from sandbox.backends import Kind
from sandbox.config import SandboxConfig
from verl_jobs.config.training import Training

# environment variables that a sweep's agent sets for its command
SWEEP = (
    "WANDB_SWEEP_ID",
    "WANDB_RUN_ID",
    "WANDB_SWEEP_PARAM_PATH",
    "WANDB_ENTITY",
    "WANDB_PROJECT",
)
LOGGERS = ("mlflow", "wandb")  # loggers of verl besides `file`
VALIDATION = "val-core/validation/acc/mean@1"
MEAN_OF_MORE = re.compile(r"^(val-\w+/validation/acc\w*/mean)@\d+$")
WANDB_ADDRESS = "wandb_address.txt"  # page of the W&B run, if it is not offline
DONE = "done.json"
FIX = f"{RESTORE}, or delete the training's folder, and the next run trains again"


PLACES = ("folder", "start", "train", "validation")


class TrainingJob(BaseModel):
    """Settings of one run. Two jobs with the same `key` are the same work."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    folder: str
    run_id: str
    start: str  # a Hugging Face folder, or a hub id on a GPU
    train: str  # parquet with verl's columns
    validation: str
    inputs: dict[str, str]  # name of each input -> content hash
    training: Training
    reward: RewardConfig
    reward_hash: str
    battery: str = ""  # result of the exploit battery on the reward; its hash if the reward passed
    isolation: Literal["auto", "root", "userns", "bare"]  # requested isolation of the sandbox
    backend: Kind = "local"  # of the sandbox
    workers: PositiveInt | None = None  # of the sandbox on a node; None: one per core
    packages: tuple[str, ...] = SandboxConfig().packages  # third-party packages for programs
    seed: int
    loggers: tuple[str, ...] = LOGGERS
    tracking_uri: str = ""  # MLflow; empty: no MLflow logger
    store: str = (
        ""  # root URL (fsspec) of the object store that its saves are copied to; empty: none
    )

    @property
    def key(self) -> str:
        names = {"run_id", "inputs", "training", "reward", "reward_hash", "seed"}
        fields = self.model_dump(include=names, mode="json")
        return hash_data(fields | {"packages": sorted(self.packages)})

    @property
    def mirror(self) -> str:
        """URL of the copies of its saves, unique to this job; empty: no copies."""
        return (
            f"{self.store.rstrip('/')}/trainings/{self.run_id}/{self.key[:12]}"
            if self.store
            else ""
        )

    @property
    def tags(self) -> dict[str, str]:
        """Tags of its runs, the same in W&B and MLflow."""
        tags = {
            "run_id": self.run_id,
            "algorithm": self.training.algorithm,
            "seed": str(self.seed),
            "key": self.key[:12],
        }
        return tags | {
            "start": self.inputs.get("start", "")[:12],
            "reward": self.reward_hash[:12],
            "battery": self.battery[:12] or "not run",
        }

    @property
    def path(self) -> Path:
        return Path(self.folder)

    def write(self) -> Path:
        """Write the settings. Places in the home are relative to the folder: a copied or moved home
        has its own.
        """
        target = self.path / "job.json"
        places = {name: _stored(getattr(self, name), self.path) for name in PLACES}
        stored = self.model_copy(update=places)
        write_atomic(target, seal(stored.model_dump_json(indent=1)))
        return target

    @classmethod
    def read(cls, path: Path) -> TrainingJob:
        """Raises CorruptArtifact for a file that was changed after it was written."""
        with reading(path, FIX):
            job = cls.model_validate(unseal(path.read_text(encoding="utf-8"), path, FIX))
        folder = path.absolute().parent
        places = {name: _present(getattr(job, name), folder) for name in PLACES}
        return job.model_copy(update=places)

    @property
    def done(self) -> dict[str, Any] | None:
        """Contents of `done.json`; None while the run has not finished. Raises CorruptArtifact."""
        return read_done(self.path)

    def finish(self) -> None:
        """Write `done.json`, with the hashes of metrics and samples, which change no more."""
        logs = sorted([*self.path.glob("metrics-*.jsonl"), *self.path.glob("samples/*.jsonl")])
        done = {
            "steps": self.training.steps,
            "candidates": sorted(candidates(self.path)),
            "stopped": self.stopped,
            "files": {path.relative_to(self.path).as_posix(): hash_file(path) for path in logs},
        }
        write_atomic(self.path / DONE, seal(json.dumps(done, indent=1)))

    @property
    def stopped(self) -> str:
        """Why the training stopped before its last step.

        Empty if it did not (verl_jobs/trainer/early_stop.py).
        """
        return stop_reason(self.path)

    def validations(self) -> dict[int, float]:
        """Return the validation score by step, for the scheduled validation steps.

        An interrupted run saves at its current step, and is scored there when it resumes. That step
        is left out, so that early stopping, retention and selection are the same as in a run
        without interruption. If only such steps were scored, they are returned.
        """
        scored = {
            int(row["step"]): float(row[VALIDATION])
            for row in metrics(self.path)
            if VALIDATION in row
        }
        due = {
            step: score for step, score in scored.items() if step % self.training.save_every == 0
        }
        # a score of the start policy alone (step 0) selects nothing
        return due if any(due) else scored


def _stored(place: str, folder: Path) -> str:
    """Return a place relative to a training's folder, with "./", if it is in the same home; another
    place, such as a hub id, unchanged.
    """
    home = (
        folder.parents[3] if len(folder.parts) > 4 and folder.parents[2].name == "runs" else folder
    )
    inside = Path(place).is_absolute() and Path(place).is_relative_to(home)
    return f"./{os.path.relpath(place, folder)}" if inside else place


def _present(stored: str, folder: Path) -> str:
    """Return where a place of a training is now."""
    return os.path.normpath(folder / stored) if stored.startswith("./") else stored


def read_done(folder: Path) -> dict[str, Any] | None:
    """Return the contents of `done.json`; None while the run has not finished.

    Raises CorruptArtifact if it or the metrics were changed after the end of the run.
    """
    path = folder / DONE
    if not path.exists():
        return None
    with reading(path, FIX):
        done = unseal(path.read_text(encoding="utf-8"), path, FIX)
        logs = {name: each for name, each in done.get("files", {}).items() if "/" not in name}
    check_files(folder, logs, FIX)
    return done


def check_metrics(folder: Path) -> None:
    """Raise CorruptArtifact for metrics that were changed after the end of the run, and before its
    end for a whole line that `metrics` skips.
    """
    if read_done(folder) is not None:
        return
    for path in sorted(folder.glob("metrics-*.jsonl")):
        for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], start=1):
            if _row(line) is None:
                raise changed(f"{path}: line {number}", fix=RESTORE)


def stop_reason(folder: Path) -> str:
    """Return why a training stopped before its last step; "" if it did not.

    Raises CorruptArtifact for a `stopped.json` that cannot be read.
    """
    path = folder / "stopped.json"
    if not path.exists():
        return ""
    with reading(path, FIX):
        return str(json.loads(path.read_text(encoding="utf-8"))["reason"])


def candidates(folder: Path) -> dict[int, Path]:
    """Return step -> published candidate, in order of steps.

    Incomplete candidates have no manifest and are left out.
    """
    folders = {
        int(path.name.removeprefix("step-")): path
        for path in (folder / "candidates").glob("step-*")
        if (path / "manifest.json").exists()
    }
    return dict(sorted(folders.items()))


def metrics(folder: Path) -> list[dict[str, Any]]:
    """Return one dictionary per step, in order, over all attempts.

    A later attempt's values replace earlier ones. A line that a kill truncated, or that cannot be
    read, is skipped. Each dictionary holds `step` and verl's own keys. Callers must not modify it:
    the result is cached until a file changes.
    """
    files = [(path, path.stat()) for path in sorted(folder.glob("metrics-*.jsonl"))]
    return list(_read(tuple((path, status.st_size, status.st_mtime_ns) for path, status in files)))


@lru_cache(maxsize=8)
def _read(files: tuple[tuple[Path, int, int], ...]) -> list[dict[str, Any]]:
    """Read the metrics files.

    files: each with its size and modification time, the key of the cache.
    """
    steps: dict[int, dict[str, Any]] = {}
    for path, _, _ in files:
        for row in filter(None, map(_row, path.read_bytes().splitlines())):
            steps[row["step"]] = steps.get(row["step"], {}) | row
    return [steps[step] for step in sorted(steps)]


def _row(line: bytes) -> dict[str, Any] | None:
    """Return the values of a line with their step; None if it holds no metrics."""
    try:
        record = json.loads(line)
        values = {_named(key): value for key, value in record["data"].items()}
        return values | {"step": int(record["step"])}
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


def _named(key: str) -> str:
    """Return the metric's name: that of VALIDATION for any number of completions a problem."""
    return MEAN_OF_MORE.sub(r"\1@1", key)


def next_attempt(folder: Path) -> int:
    return 1 + max(
        (int(path.stem.removeprefix("metrics-")) for path in folder.glob("metrics-*.jsonl")),
        default=0,
    )
