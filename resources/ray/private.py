"""The Ray that a training runs on.

It is a private one of this machine, started on demand, or an existing one that is joined by its
address. resources/ray/job.py runs a training on it, resources/ray/kuberay.py writes the
manifests for Kubernetes.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from resources.capacity import VISIBLE
from resources.ray import head as ray_head
from verl_jobs.config.environment import environment
from verl_jobs.job import TrainingJob
from verl_jobs.trainer import trainer_lease
from verl_jobs.trainer.layout import CPUS, PATIENCE, cpus_beside
from verl_jobs.trainer.preemption_hook import TRAINING

POLL_S = 0.5
PATIENCE_S = 15.0
END_S = 10.0  # seconds that killed processes have to be gone
MIN_CPUS, SPARE_CPUS = 16, 5  # logical ones of a private Ray: the least, and unclaimed ones
# In the environment of every process of a run: Ray's daemons leave the process tree, but their
# environment stays.
RUN = "RATCHET_RUN"
OF_ANOTHER_RAY = ("RAY_ADDRESS", "RAY_AUTH_TOKEN")  # a private Ray ignores these variables


class TrainingFailed(RuntimeError):
    """The training process ended without finishing.

    The message gives its last lines and its log.
    """


@dataclass(frozen=True)
class RayHead:
    address: str
    dashboard: str


class Private:
    """The private Ray of this folder, started on demand."""

    def __init__(
        self, folder: Path, job: TrainingJob, bind: str = ray_head.LOOPBACK, ranks: int = 0
    ) -> None:
        """ranks: number of ranks that it has places for; 0: as many as the job has."""
        self.folder, self.job, self.bind, self.ranks = (
            folder,
            job,
            bind,
            ranks or job.training.ranks,
        )

    def dashboard(self) -> str:
        return ensure_head(self.folder, self.job, self.bind, self.ranks).dashboard

    def headers(self) -> dict[str, str]:
        """Return the token explicitly: this process may have read another cluster's token."""
        return {
            "Authorization": f"Bearer {_token(self.folder).read_text(encoding='ascii').strip()}"
        }

    def there(self) -> bool:
        return _running(self.folder) is not None

    def head(self) -> psutil.Process | None:
        """Return the process above all of its processes; None if it has ended."""
        about = ray_head.described(self.folder / "head.json")
        with contextlib.suppress(psutil.NoSuchProcess):
            return psutil.Process(about["pid"]) if about else None
        return None

    def end(self) -> None:
        """Kill its head and all processes below; the next training starts another."""
        if not (head := self.head()):
            return
        processes = [head]
        with contextlib.suppress(psutil.NoSuchProcess):
            processes += head.children(recursive=True)
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(processes, timeout=END_S)
        ray_head.sweep(self.folder / "head.json")  # a killed head counts until its parent reaps it

    def submission(self) -> dict[str, Any]:
        return {}


class Joined:
    """A cluster that somebody else started.

    It is lost when its dashboard has not responded for PATIENCE_S. Its token is in the environment.
    """

    def __init__(
        self,
        address: str,
        job: TrainingJob,
        patience_s: float = PATIENCE_S,
        here: Callable[[], Private] | None = None,
    ) -> None:
        """Store the address and the reaction to a lost cluster.

        patience_s: how long a training that has begun waits for the cluster, or for nodes of it.
        here: returns the Ray to continue on then, or raises NotReady.
        """
        self.address, self.job, self.responded_at = address.rstrip("/"), job, time.monotonic()
        self.patience_s, self.here = patience_s, here

    def dashboard(self) -> str:
        """Return the dashboard's address. Raises TrainingFailed if it does not respond."""
        if not self.back(PATIENCE_S):
            raise TrainingFailed(
                f"no Ray responds at {self.address} (ray.address of the profile): start it, or "
                "remove the address"
            )
        return self.address

    def back(self, within_s: float) -> bool:
        """Return whether it responds within this many seconds."""
        deadline = time.monotonic() + within_s
        while not responds(self.address):
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)
        self.responded_at = time.monotonic()
        return True

    def headers(self) -> dict[str, str]:
        return {}

    def there(self) -> bool:
        if responds(self.address):
            self.responded_at = time.monotonic()
        return time.monotonic() - self.responded_at < PATIENCE_S

    def submission(self) -> dict[str, Any]:
        """Return submission options. This code is on the cluster's nodes, as in the image."""
        return {"runtime_env": runtime_env(self.job, self.patience_s)}


def runtime_env(job: TrainingJob, patience_s: float) -> dict[str, Any]:
    """Return Ray's runtime environment for this job on a cluster.

    It holds what the processes of a private Ray have in their environment from the start.
    """
    here = {PATIENCE: str(patience_s), TRAINING: str(job.path)}
    return {"env_vars": environment(job.training) | _threads(job.training.threads) | here}


def responds(address: str) -> bool:
    """Return whether a Ray's dashboard responds there, even if it requires a token."""
    try:
        with urllib.request.urlopen(f"{address}/api/version", timeout=5):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


def ensure_head(
    folder: Path, job: TrainingJob, bind: str = ray_head.LOOPBACK, ranks: int = 0
) -> RayHead:
    """Return the private Ray of this folder for trainings: the running one, or a new one.

    This process holds it from now on.
    """
    folder.mkdir(parents=True, exist_ok=True)
    trainer_lease.register_holder(folder / ray_head.HOLDERS)
    # Read by Ray's client in this process.
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(_token(folder))}
    deadline = trainer_lease.Deadline(ray_head.START_S)
    while (head := _running(folder)) is None:
        _spawn(folder, job, bind, ranks or job.training.ranks)
        for _ in range(20):
            time.sleep(0.25)
            if head := _running(folder):
                return head
            if deadline.passed():
                raise TrainingFailed(f"Ray did not start: see {folder / 'head.log'}")
    return head


def _running(folder: Path) -> RayHead | None:
    if not (about := ray_head.described(folder / "head.json")):
        return None
    try:
        os.kill(about["pid"], 0)
    except ProcessLookupError:
        return None
    return RayHead(about["address"], about["dashboard"])


def _spawn(folder: Path, job: TrainingJob, bind: str, ranks: int) -> None:
    """Start the head process.

    With the engine hf, Ray's GPUs are places for ranks on the CPU, and Ray would refuse more of
    them than VISIBLE lists.
    """
    removed = (*OF_ANOTHER_RAY, VISIBLE) if job.training.engine == "hf" else OF_ANOTHER_RAY
    variables = {name: value for name, value in os.environ.items() if name not in removed}
    variables |= environment(job.training) | {
        "RATCHET_RANKS": str(ranks + job.training.scale.engine_gpus),
        ray_head.CPUS: str(max(MIN_CPUS, ranks * CPUS + cpus_beside(job.training) + SPARE_CPUS)),
        "RATCHET_RAY_BIND": bind,
        trainer_lease.HOLDERS: str(folder / ray_head.HOLDERS),
        RUN: str(job.path.parent.parent),
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(_token(folder)),
        **_threads(job.training.threads),
    }
    if bind == ray_head.LOOPBACK:
        # Ray's switch for a single machine: its servers bind 127.0.0.1, not every interface.
        variables["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    with (folder / "head.log").open("ab") as log:
        subprocess.Popen(
            [sys.executable, "-m", "resources.ray.head", str(folder)],
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            env=variables,
            start_new_session=True,
        )


def _threads(threads: int) -> dict[str, str]:
    return {"OMP_NUM_THREADS": str(threads)} if threads else {}


def _token(folder: Path) -> Path:
    """Return the path of Ray's token, created once per home and readable only by this user.

    The file is complete or absent. If two processes create it, the first one wins.
    """
    path = folder / "token"
    if not path.exists():
        handle, beside = tempfile.mkstemp(dir=folder, prefix=".token.")
        with (
            os.fdopen(handle, "w", encoding="ascii") as file,
            (folder / "token.lock").open("a") as lock,
        ):
            file.write(secrets.token_hex(32))
            file.flush()
            os.fsync(handle)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if path.exists():
                Path(beside).unlink()
            else:
                Path(beside).replace(path)
    return path
