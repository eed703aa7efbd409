"""A search over a training's settings, as its files tell it: what a trial is, where it trains, and which of its validations count.

In: the search's folder, with the job that all trials change. Knows no Ray, which reads its settings when it is imported.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from verl_jobs.config.training import Training
from verl_jobs.job import TrainingJob

BASE, COMMAND = "base.json", "command.json"  # what all trials share, and what trains one


def trial_job(base: TrainingJob, point: Mapping[str, Any]) -> TrainingJob:
    """The job of one trial: `point` has keys as a profile writes them, training.scale.updates. Its folder follows from what it is told."""
    told = base.training.model_dump()
    for key, value in point.items():
        *sections, last = key.split(".")[1:]
        place = told
        for section in sections:
            place = place[section]
        place[last] = value
    job = base.model_copy(update={"training": Training.model_validate(told)})
    return job.model_copy(update={"folder": str(Path(base.folder).parent / job.key[:12])})


def mark(study: Path, job: TrainingJob) -> Path:
    """Says, when it is there, at which step a trial was ended for being worse than others."""
    return study / f"worse-{job.key[:12]}.json"


def worse_at(study: Path, job: TrainingJob) -> int | None:
    path = mark(study, job)
    return int(json.loads(path.read_text(encoding="utf-8"))["step"]) if path.exists() else None


def validations(study: Path, job: TrainingJob) -> list[tuple[int, float]]:
    """(step, share solved) of each validation of a trial, after the start's and up to where it was ended."""
    last = worse_at(study, job)
    return [
        (step, score)
        for step, score in job.validations().items()
        if step > 0 and (last is None or step <= last)
    ]


def last_words(job: TrainingJob) -> str:
    """Why the process that trained it ended, in a line."""
    log = job.path / "trial.log"
    lines = (
        [
            line
            for line in log.read_text(encoding="utf-8", errors="replace").splitlines()
            if line.strip()
        ]
        if log.exists()
        else []
    )
    return (
        lines[-1].removeprefix("error: ")[:300] if lines else f"it ended without a word: see {log}"
    )
