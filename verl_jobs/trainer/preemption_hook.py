"""The machine of a pod is taken back: `python -m verl_jobs.trainer.preemption_hook HOME`, before Kubernetes ends a worker of KubeRay's (resources/ray/kuberay.py).

A training's own process is on the head, and is not told. So each training under HOME that has a process in this pod is given notice from here, and
the pod stays until those processes are gone: the training has then saved and ended. With nothing of a training in it, it goes at once.
"""

from __future__ import annotations

import socket
import sys
import time
from pathlib import Path

import psutil

from verl_jobs.trainer import trainer_lease as owner

TRAINING = (
    "RATCHET_TRAINING"  # in the environment of a training's processes on a joined Ray: its folder
)
GRACE_S = 110  # that the pod asks for; AWS gives two minutes, others less, and then they decide
STAYS_S = GRACE_S - 10.0
POLL_S = 0.5


def main(home: Path, stays_s: float = STAYS_S) -> None:
    found = trainings(home)
    for folder in sorted(set(found.values())):
        owner.give_notice(folder, f"the machine of {socket.gethostname()} is taken back")
    deadline = time.monotonic() + stays_s
    while any(_lives(process) for process in found) and time.monotonic() < deadline:
        time.sleep(POLL_S)


def trainings(home: Path) -> dict[psutil.Process, Path]:
    """Processes of this pod that belong to a training under `home`, and its folder."""
    found = {}
    for process in psutil.process_iter():
        try:
            told = process.environ().get(TRAINING, "")
        except psutil.Error:  # gone meanwhile, or another user's
            continue
        if told and Path(told).is_relative_to(home) and Path(told).is_dir():
            found[process] = Path(told)
    return found


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


if __name__ == "__main__":
    main(Path(sys.argv[1]))
