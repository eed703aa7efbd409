"""A job on the Ray that trains which is not the training: the warm-up, completions to score.

In: a stage context, the hashes of what the work depends on. Out: a job in a folder of its own.
"""

from __future__ import annotations

from typing import Any

from artifacts.hashing import hash_data
from resources.run_context import StageContext
from verl_jobs.job import TrainingJob


def other_job(stage: StageContext, name: str, inputs: Any, start: str, seed: int) -> TrainingJob:
    """Return a job with the layout of the training and without rows.

    inputs: what the work depends on, as JSON; equal inputs give the same job.
    """
    key = hash_data(inputs)
    return TrainingJob(
        folder=str(stage.pipeline_run.folder / name / key[:12]),
        run_id=stage.pipeline_run.record.id,
        start=start,
        train="",
        validation="",
        inputs={name: key},
        training=stage.profile.training,
        reward=stage.profile.reward,
        reward_hash="",
        isolation="auto",
        seed=seed,
        loggers=(),
    )
