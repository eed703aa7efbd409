"""How busy a machine is that trains: its CPUs, its memory, and its GPUs where the driver's `nvidia-smi` is there to ask.

In: nothing. Out: plain numbers by short names; without a GPU none of it is said. verl_jobs/metrics/machines.py asks all machines of a training.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psutil

MEASURED = ("cpu_percent", "memory_gib", "gpu_percent", "gpu_memory_gib")
OF = " of "  # between such a name and the machine's, where there are several
QUERY = ["--query-gpu=utilization.gpu,memory.used", "--format=csv,noheader,nounits"]


@dataclass(frozen=True)
class Reading:
    """busy_s, passed_s: of all cores together, since the machine was started."""

    busy_s: float
    passed_s: float
    now: dict[str, float]


def reading() -> Reading:
    """memory_gib: what is not available to others; GPUs: mean load, memory of all."""
    memory, times = psutil.virtual_memory(), psutil.cpu_times()
    passed = sum(times) - times.guest - times.guest_nice  # which are in the others
    now = {"memory_gib": (memory.total - memory.available) / 2**30}
    now |= gpus(asked.stdout) if (asked := _smi()) and asked.returncode == 0 else {}
    return Reading(passed - times.idle - times.iowait, passed, now)


def load(before: Reading | None, after: Reading) -> dict[str, float]:
    """By the names in MEASURED; cpu_percent is that of the time between the two, and left out without the first."""
    if before is None or after.passed_s <= before.passed_s:
        return after.now
    busy = (after.busy_s - before.busy_s) / (
        after.passed_s - before.passed_s
    )  # of sums of many seconds: an idle moment may come to -1e-11
    return {"cpu_percent": 100 * min(1.0, max(0.0, busy))} | after.now


def measured(message: Mapping[str, Any]) -> dict[str, float]:
    """What of it is a machine's, whether it is one's or one of several."""
    return {
        name: float(value) for name, value in message.items() if name.partition(OF)[0] in MEASURED
    }


def gpus(told: str) -> dict[str, float]:
    """What `nvidia-smi` said, a line a GPU: percent, MiB. A GPU that does not say is left out."""
    rows = [line.split(",") for line in told.splitlines() if line.strip()]
    known = [
        (float(load), float(memory))
        for load, memory in rows
        if load.strip().isdigit() and memory.strip().isdigit()
    ]
    if not known:
        return {}
    return {
        "gpu_percent": sum(load for load, _ in known) / len(known),
        "gpu_memory_gib": sum(memory for _, memory in known) / 1024,
    }


def _smi() -> subprocess.CompletedProcess[str] | None:
    command = shutil.which("nvidia-smi")
    return (
        subprocess.run([command, *QUERY], capture_output=True, text=True, timeout=10, check=False)
        if command
        else None
    )
