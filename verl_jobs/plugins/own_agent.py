"""A user's agent loop where verl makes one for each rollout: the job says which (`training.plugins.agent_loop`), `own_agent.yaml` names `make`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from verl_jobs.config.references import load
from verl_jobs.job import TrainingJob
from verl_jobs.trainer.reward_manager import job_path


def make(**given: Any) -> Any:
    """The loop with what verl gives every agent loop; hydra calls it."""
    return _loop(job_path(given["trainer_config"].config))(**given)


@cache
def _loop(job: Path) -> Any:
    return load(TrainingJob.read(job).training.plugins.agent_loop)
