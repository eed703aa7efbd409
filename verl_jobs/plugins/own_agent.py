"""Factory of a user's agent loop, which verl calls for each rollout.

`own_agent.yaml` names `make`; the job names the loop (`training.plugins.agent_loop`).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from verl_jobs.config.references import load
from verl_jobs.job import TrainingJob
from verl_jobs.trainer.reward_manager import job_path


def make(**arguments: Any) -> Any:
    """Return the loop, built with verl's usual arguments of an agent loop; called by hydra."""
    return _loop(job_path(arguments["trainer_config"].config))(**arguments)


@cache
def _loop(job: Path) -> Any:
    return load(TrainingJob.read(job).training.plugins.agent_loop)
