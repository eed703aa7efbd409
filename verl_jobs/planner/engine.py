"""Whether the engine of a training can be imported, before Ray starts.

An engine whose build does not match torch or the driver fails at its import. In a training that
happens minutes after the start, in an actor of Ray.
"""

from __future__ import annotations

import subprocess
import sys

from verl_jobs.config.training import Training
from verl_jobs.planner.preflight import CannotTrain

IMPORT_S = 300.0


def import_fault(module: str) -> str:
    """Return why this module cannot be imported, in one line; empty if it can.

    It is imported in a process of its own: an engine keeps memory, and may abort.
    """
    try:
        run = subprocess.run(
            [sys.executable, "-c", f"import {module}"],
            capture_output=True,
            text=True,
            check=False,
            timeout=IMPORT_S,
        )
    except subprocess.TimeoutExpired:
        return f"its import takes more than {IMPORT_S:.0f} s"
    if run.returncode == 0:
        return ""
    lines = run.stderr.strip().splitlines()
    return lines[-1] if lines else f"its import ended with {run.returncode}"


def check_engine(training: Training) -> None:
    """Raise CannotTrain if the training's engine cannot be imported on this machine."""
    if training.engine == "hf":
        return
    if fault := import_fault(training.engine):
        raise CannotTrain(
            f"training.engine {training.engine}: {fault}: install it for this machine's GPUs "
            "(`ratchet doctor` shows what is missing), or train with the profile embedded"
        )
