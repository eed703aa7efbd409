"""Train one job of a study in a process of its own.

`python -m experiments.training_process JOB PARENT`. SIGTERM ends the training, which saves a
checkpoint first. Exit code 0 when the training is done, else 1 with one line that gives the reason.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from pipelines.process import die_with_parent
from resources.ray.job import train
from resources.ray.place import ray_of
from resources.ray.private import TrainingFailed
from resources.settings import Settings
from verl_jobs.job import TrainingJob
from verl_jobs.planner.preflight import CannotTrain
from verl_jobs.sft.start import UnfitStart


def main(job_file: str, parent: str) -> int:
    die_with_parent(int(parent))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    job, settings = TrainingJob.read(Path(job_file)), Settings.read()
    try:
        train(job, ray_of(settings.home, settings.profile, job))
    except KeyboardInterrupt:
        return 1
    except (TrainingFailed, CannotTrain, UnfitStart) as error:
        print(f"error: {error}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
