"""The processes of a run: they end with their parent, and their memory is measured."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal

import psutil

from resources.ray.private import RUN

PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Let the kernel kill this process when the thread that started it ends, or now if it has
    already ended.
    """
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def restore_sigint() -> None:
    """Restore SIGINT's default handler.

    Background jobs of a shell script ignore SIGINT, and Dagster handles SIGTERM like SIGINT.
    Without this, neither `ratchet jobs stop` nor a SIGTERM to `ratchet ui` has an effect.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)


def run_processes(run: str) -> list[psutil.Process]:
    """Return this process and this user's processes whose environment names the run's folder."""
    processes = [psutil.Process()]
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and process.environ().get(RUN) == run:
                processes.append(process)
    return processes


def pss_bytes(processes: list[psutil.Process]) -> int:
    """Return the processes' proportional set size, in which a shared page is divided among its
    processes. Processes that have ended count as 0.
    """
    total = 0
    for process in processes:
        with contextlib.suppress(psutil.Error):
            total += process.memory_full_info().pss
    return total
