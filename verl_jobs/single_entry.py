"""Entry points of Ray jobs that are not reinforcement learning: one process at a time in a folder,
which ends after a notice or with its owner.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from verl_jobs.job import TrainingJob
from verl_jobs.trainer import progress, trainer_lease
from verl_jobs.trainer.entry import DIED, end_if_stuck

WATCH_S = 1.0


def run(path: Path, owned: bool, work: Callable[[TrainingJob], None]) -> None:
    """Do the work of the job in this file, unless it is done. owned: whether a process renews its
    lease.
    """
    job = TrainingJob.read(path)
    with trainer_lease.training_lock(job.path) as locked:
        if not locked:
            sys.exit(f"another process already works in {job.path}")
        if job.done is not None:
            return
        trainer_lease.withdraw_notice(job.path)
        if holders := os.environ.get(trainer_lease.HOLDERS):
            trainer_lease.register_holder(Path(holders))
        stuck = progress.ProgressWatch(job.path, job.training.stall_s)
        threading.Thread(target=end_if_stuck, args=(stuck,), daemon=True).start()
        threading.Thread(target=_watch, args=(job.path, owned), daemon=True).start()
        work(job)
        job.finish()


def _watch(folder: Path, owned: bool) -> None:
    """End the process after a notice or an expired lease; what it has stored loses little. A new
    line of metrics is progress.
    """
    size, lease = 0, trainer_lease.Lease(folder) if owned else None
    while True:
        now = sum(log.stat().st_size for log in folder.glob("metrics-*.jsonl"))
        if now != size:
            size = now
            progress.touch(folder)
        if trainer_lease.notice(folder) or (lease and lease.expired()):
            os._exit(DIED)
        time.sleep(WATCH_S)
