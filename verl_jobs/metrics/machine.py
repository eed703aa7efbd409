"""Load of a training machine: CPUs, memory, and GPUs if `nvidia-smi` is available.

Returns plain numbers by short names, without a GPU's if there is none.
verl_jobs/metrics/machines.py reads all machines of a training.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

MEASURED = ("cpu_percent", "memory_gib", "gpu_percent", "gpu_memory_gib")
OF = " of "  # between metric name and machine, if there are several machines
QUERY = ["--query-gpu=utilization.gpu,memory.used", "--format=csv,noheader,nounits"]


@dataclass(frozen=True)
class Reading:
    """One reading of the machine's CPU time.

    busy_s, passed_s: seconds of all cores together since boot.
    """

    busy_s: float
    passed_s: float
    now: dict[str, float]


def reading() -> Reading:
    """Measure this machine.

    memory_gib: memory in use. gpu_percent: mean load. gpu_memory_gib: memory in use on all GPUs.
    """
    memory, times = psutil.virtual_memory(), psutil.cpu_times()
    passed = sum(times) - times.guest - times.guest_nice  # counted in user and nice too
    values = {"memory_gib": (memory.total - memory.available) / 2**30}
    values |= gpus(process.stdout) if (process := _smi()) and process.returncode == 0 else {}
    return Reading(passed - times.idle - times.iowait, passed, values)


def available_bytes(cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the memory that this process may still use: the machine's, or the rest under its
    cgroup's limit if that is less. Files in the page cache that are not in use count as free.
    """
    available: int = psutil.virtual_memory().available
    version_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
    for folder, limit, used, dropped in (
        (cgroup, "memory.max", "memory.current", "inactive_file"),
        (cgroup / "memory", *version_1),
    ):
        if (folder / limit).exists() and (text := (folder / limit).read_text().strip()) != "max":
            stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
            left = int(text) - int((folder / used).read_text()) + int(stat[dropped])
            available = min(available, left)
    return available


def load(before: Reading | None, after: Reading) -> dict[str, float]:
    """Return the load by the names in MEASURED.

    cpu_percent is the load between the two readings, and is left out without the first.
    """
    if before is None or after.passed_s <= before.passed_s:
        return after.now
    # differences of large sums: idle may give -1e-11
    busy = (after.busy_s - before.busy_s) / (after.passed_s - before.passed_s)
    return {"cpu_percent": 100 * min(1.0, max(0.0, busy))} | after.now


def measured(message: Mapping[str, Any]) -> dict[str, float]:
    """Return the machine metrics of a message, of one machine or of several."""
    return {
        name: float(value) for name, value in message.items() if name.partition(OF)[0] in MEASURED
    }


def gpus(output: str) -> dict[str, float]:
    """Parse the output of `nvidia-smi`, one line per GPU: percent, MiB.

    A GPU that does not report is left out.
    """
    rows = [line.split(",") for line in output.splitlines() if line.strip()]
    readings = [
        (float(load), float(memory))
        for load, memory in rows
        if load.strip().isdigit() and memory.strip().isdigit()
    ]
    if not readings:
        return {}
    return {
        "gpu_percent": sum(load for load, _ in readings) / len(readings),
        "gpu_memory_gib": sum(memory for _, memory in readings) / 1024,
    }


def _smi() -> subprocess.CompletedProcess[str] | None:
    command = shutil.which("nvidia-smi")
    return (
        subprocess.run([command, *QUERY], capture_output=True, text=True, timeout=10, check=False)
        if command
        else None
    )
