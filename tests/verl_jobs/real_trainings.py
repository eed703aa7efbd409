"""Run trainings with real verl in a process of their own, and get a training's overrides."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from verl_jobs.config.overrides import overrides
from verl_jobs.config.training import Training
from verl_jobs.job import TrainingJob

ROOT = Path(__file__).parents[2]
# A separate process: importing verl imports Ray, which reads its token's path then.
TRAIN = """
import sys
from pathlib import Path
from resources.ray.private import Private
from resources.ray.job import train
from verl_jobs.job import TrainingJob
attempts, *paths = sys.argv[1:]
for path in map(Path, paths):
    job = TrainingJob.read(path)
    train(job, Private(Path(paths[0]).parent / "ray", job), attempts=int(attempts))
"""


def command(*jobs: TrainingJob, attempts: int = 1) -> list[str]:
    """Return the command that trains these jobs on a private Ray in the first one's folder."""
    files = [str(job.write()) for job in jobs]
    return [sys.executable, "-c", TRAIN, str(attempts), *files]


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT)}


def run(*jobs: TrainingJob) -> None:
    """Train these jobs, each in one attempt."""
    ended = subprocess.run(
        command(*jobs), env=environment(), capture_output=True, text=True, check=False
    )
    logs = [job.path / "trainer.log" for job in jobs]
    text = "".join(log.read_text()[-3000:] for log in logs if log.exists())
    assert ended.returncode == 0, ended.stderr[-2000:] + text


def lines_of(training: Training, folder: Path = Path("x")) -> list[str]:
    """Return verl's overrides for a training whose files are in this folder."""
    paths = {name: folder / name for name in ("model", "train", "validation")}
    return overrides(training, seed=1, loggers=[], name="t", folder=folder, **paths)
