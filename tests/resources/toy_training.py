"""A toy training that keeps the contract with its owner: one at a time, lease, notice, `done.json`.

`python -m toy_training FOLDER/job.json` ends with success when the file `go` exists. It logs into
`toy.log`. If the file `mortal` exists, it dies at once, after a save if the file says `saves`.
The file `slow` holds the seconds that it needs to end after SIGTERM.
"""

import fcntl
import os
import signal
import sys
import time
from pathlib import Path

from verl_jobs.job import TrainingJob
from verl_jobs.trainer import progress, trainer_lease
from verl_jobs.trainer.entry import DIED

TERM_S = 10.0  # term of the lease: longer than the next owner's start on a busy machine


def main(job: TrainingJob) -> None:
    with (job.path / "trainer.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        trainer_lease.withdraw_notice(job.path)
        trainer_lease.register_holder(Path(os.environ[trainer_lease.HOLDERS]))
        lease = trainer_lease.Lease(job.path, TERM_S)
        if (slow := job.path / "slow").exists():

            def ends_slowly(*_: object) -> None:
                say(job, "asked to end")
                time.sleep(float(slow.read_text()))
                trainer_lease.give_notice(job.path, "SIGTERM")

            signal.signal(signal.SIGTERM, ends_slowly)
        say(job, f"begins {os.getpid()}")
        progress.begin(job.path, "toy")
        if (mortal := job.path / "mortal").exists():
            if mortal.read_text() == "saves":
                save = (
                    job.path
                    / "saves"
                    / f"global_step_{len((job.path / 'toy.log').read_text().splitlines())}"
                )
                save.mkdir(parents=True)
                (save / "whole").touch()
            sys.exit(DIED)
        while not (job.path / "go").exists():
            if lease.expired():
                trainer_lease.give_notice(job.path, "nobody renewed its lease")
            if why := trainer_lease.notice(job.path):
                say(job, f"saves and ends: {why}")
                sys.exit(DIED)
            progress.touch(job.path)
            time.sleep(0.1)
        job.finish()


def say(job: TrainingJob, text: str) -> None:
    with (job.path / "toy.log").open("a") as file:
        file.write(text + "\n")


if __name__ == "__main__":
    main(TrainingJob.read(Path(sys.argv[1])))
