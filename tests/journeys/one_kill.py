"""Run a training whose trainer is killed once, after its first save."""

from __future__ import annotations

import os
import signal
import subprocess

from tests.journeys.demo_run import wait_until
from tests.verl_jobs.real_trainings import command, environment
from verl_jobs.job import TrainingJob
from verl_jobs.trainer.checkpoints import complete_saves
from verl_jobs.trainer.trainer_lease import lock_holder


def train_with_a_kill(job: TrainingJob, seconds: float = 1800) -> int:
    """Train to the end on a private Ray; return the step of the save before the kill."""
    log = job.path / "owner.log"
    with log.open("wb") as out:
        owner = subprocess.Popen(
            command(job, attempts=2), env=environment(), stdout=out, stderr=out
        )
        saves = job.path / "saves"
        wait_until(lambda: bool(complete_saves(saves)) or owner.poll() is not None, seconds)
        trainer = lock_holder(job.path)
        assert trainer is not None, log.read_text()[-3000:]
        newest = complete_saves(saves)[-1]
        os.kill(trainer, signal.SIGKILL)
        assert owner.wait() == 0, log.read_text()[-3000:]
    assert len(list(job.path.glob("metrics-*.jsonl"))) == 2
    return newest
