"""Train one trial of `ratchet tune` in a process of its own.

`python -m experiments.trial_process RAY_FOLDER BIND ADDRESS JOB PARENT`. SIGTERM ends the training,
which saves a checkpoint first. Exit code 0 when the training is done, else 1 with one line that
gives the reason.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from pipelines.process import die_with_parent
from resources.ray.job import train
from resources.ray.private import Joined, Private, TrainingFailed
from verl_jobs.job import TrainingJob
from verl_jobs.planner.preflight import CannotTrain
from verl_jobs.sft.start import UnfitStart


def main(ray_folder: str, bind: str, address: str, job_file: str, parent: str) -> int:
    die_with_parent(int(parent))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    job = TrainingJob.read(Path(job_file))
    try:
        train(job, Joined(address, job) if address else Private(Path(ray_folder), job, bind))
    except KeyboardInterrupt:
        return 1
    except (TrainingFailed, CannotTrain, UnfitStart) as error:
        print(f"error: {error}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
