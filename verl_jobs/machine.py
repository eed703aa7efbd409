"""How busy the machine is that trains: its CPUs, its memory, and its GPUs where the driver's `nvidia-smi` is there to ask.

In: nothing. Out: plain numbers by short names; without a GPU none of it is said.
"""

from __future__ import annotations

import shutil
import subprocess

import psutil

MEASURED = ("cpu_percent", "memory_gib", "gpu_percent", "gpu_memory_gib")
QUERY = ["--query-gpu=utilization.gpu,memory.used", "--format=csv,noheader,nounits"]


def load() -> dict[str, float]:
    """cpu_percent: of all cores, since the last call in this process; memory_gib: what is not available to others; GPUs: mean load, memory of all."""
    memory = psutil.virtual_memory()
    found = {"cpu_percent": psutil.cpu_percent(), "memory_gib": (memory.total - memory.available) / 2**30}
    return found | (gpus(asked.stdout) if (asked := _smi()) and asked.returncode == 0 else {})


def gpus(told: str) -> dict[str, float]:
    """What `nvidia-smi` said, a line a GPU: percent, MiB. A GPU that does not say is left out."""
    rows = [line.split(",") for line in told.splitlines() if line.strip()]
    known = [(float(load), float(memory)) for load, memory in rows if load.strip().isdigit() and memory.strip().isdigit()]
    if not known:
        return {}
    return {"gpu_percent": sum(load for load, _ in known) / len(known), "gpu_memory_gib": sum(memory for _, memory in known) / 1024}


def _smi() -> subprocess.CompletedProcess[str] | None:
    command = shutil.which("nvidia-smi")
    return subprocess.run([command, *QUERY], capture_output=True, text=True, timeout=10, check=False) if command else None
