"""Pre-stop hook of KubeRay's workers: `python -m verl_jobs.trainer.preemption_hook HOME`.

Kubernetes runs it before it ends a worker pod (resources/ray/kuberay.py). A training's main process
runs on the head and does not learn of the preemption. So this hook gives notice to each training
under HOME that has a process in this pod. The pod stays until those processes are gone: the
trainings have then saved and ended. Without such a process, the hook returns immediately.
"""

from __future__ import annotations

import socket
import sys
import time
from pathlib import Path

import psutil

from verl_jobs.trainer import trainer_lease

TRAINING = (
    "RATCHET_TRAINING"  # set in the processes of a training on an existing Ray cluster: its folder
)
# grace period of the pod; AWS gives two minutes, other providers less, and their limit applies
GRACE_S = 110
STAYS_S = GRACE_S - 10.0
POLL_S = 0.5


def main(home: Path, stays_s: float = STAYS_S) -> None:
    processes = training_processes(home)
    for folder in sorted(set(processes.values())):
        trainer_lease.give_notice(
            folder, f"the machine of {socket.gethostname()} is being preempted"
        )
    deadline = time.monotonic() + stays_s
    while any(_is_alive(process) for process in processes) and time.monotonic() < deadline:
        time.sleep(POLL_S)


def training_processes(home: Path) -> dict[psutil.Process, Path]:
    """Return the processes of this pod that belong to a training under `home`, with its folder."""
    processes = {}
    for process in psutil.process_iter():
        try:
            folder = process.environ().get(TRAINING, "")
        except psutil.Error:  # ended meanwhile, or another user's
            continue
        if folder and Path(folder).is_relative_to(home) and Path(folder).is_dir():
            processes[process] = Path(folder)
    return processes


def _is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


if __name__ == "__main__":
    main(Path(sys.argv[1]))
