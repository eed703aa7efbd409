"""Files of a hyperparameter search: the trials, their folders, and the validations that count.

In: the search's folder, with the job that all trials modify. Does not import Ray, which reads its
settings at import.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from artifacts.integrity import reading
from verl_jobs.config.training import Training
from verl_jobs.job import TrainingJob
from verl_jobs.log import last_line

BASE, COMMAND = "base.json", "command.json"  # the base job, and the command that trains a trial


def trial_job(base: TrainingJob, point: Mapping[str, Any]) -> TrainingJob:
    """Return the job of one trial, with a folder derived from its settings.

    `point` has keys as in a profile, e.g. training.scale.updates.
    """
    settings = base.training.model_dump()
    for key, value in point.items():
        *sections, last = key.split(".")[1:]
        section_settings = settings
        for section in sections:
            section_settings = section_settings[section]
        section_settings[last] = value
    job = base.model_copy(update={"training": Training.model_validate(settings)})
    return job.model_copy(update={"folder": str(Path(base.folder).parent / job.key[:12])})


def stop_marker(study: Path, job: TrainingJob) -> Path:
    """Return the path of the marker with the step at which a bad trial was stopped."""
    return study / f"worse-{job.key[:12]}.json"


def stopped_at(study: Path, job: TrainingJob) -> int | None:
    """Return the step in the marker; None without one. Raises CorruptArtifact."""
    path = stop_marker(study, job)
    if not path.exists():
        return None
    with reading(path, "restore it from a backup, or delete it, and the trial runs on"):
        return int(json.loads(path.read_text(encoding="utf-8"))["step"])


def validations(study: Path, job: TrainingJob) -> list[tuple[int, float]]:
    """Return (step, share solved) of each validation of a trial.

    Leaves out the start policy's, and those after the step at which the trial was stopped.
    """
    last = stopped_at(study, job)
    return [
        (step, score)
        for step, score in job.validations().items()
        if step > 0 and (last is None or step <= last)
    ]


def last_log_line(job: TrainingJob) -> str:
    """Return the last line of the training process's log: why it ended."""
    log = job.path / "trial.log"
    return last_line(log).removeprefix("error: ") or f"it ended without a message: {log}"
