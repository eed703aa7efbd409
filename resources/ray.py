"""Training as a Ray job: submitted once, attached to ever after.

In: a TrainingJob. Out: its end. The submission's name follows from the chain and the config, so that a step that died and is tried again
finds its job; a job that failed or was killed with its cluster is submitted again and goes on from its last whole save.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resources import ray_head
from verl_jobs.entry import DIED
from verl_jobs.job import TrainingJob
from verl_jobs.overrides import environment

POLL_S = 0.5
GONE_S = 20.0
LOST = "LOST"  # the end of a job that a death took, not an error of its own: it is submitted again


class TrainingFailed(RuntimeError):
    """The training process ended without finishing; the message gives its last words and its log."""


@dataclass(frozen=True)
class Head:
    address: str
    dashboard: str


def ensure_head(folder: Path, job: TrainingJob) -> Head:
    """The private Ray of this folder: the running one, or a new one; this process holds it from now on."""
    folder.mkdir(parents=True, exist_ok=True)
    ray_head.hold(folder)
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(_token(folder))}  # read by Ray's client in this process
    deadline = time.monotonic() + ray_head.START_S
    while (head := _running(folder)) is None:
        _spawn(folder, job)
        for _ in range(20):
            time.sleep(0.25)
            if head := _running(folder):
                return head
        if time.monotonic() > deadline:
            raise TrainingFailed(f"Ray did not start: see {folder / 'head.log'}")
    return head


def train(
    job: TrainingJob, folder: Path, *, attempts: int = 3, on_poll: Callable[[], None] = lambda: None, bootstrap: dict[str, str] | None = None
) -> None:
    """Returns when the job has finished. Submits it, or attaches to it; after a death it is submitted again, `attempts` times in all.

    folder: of the private Ray. bootstrap: Dagster Pipes parameters. Raises TrainingFailed.
    """
    job.write()
    for attempt in range(1, attempts + 1):
        if job.done is not None:
            return
        end = _run_once(job, folder, on_poll, bootstrap)
        if job.done is None and (attempt == attempts or end != LOST):
            raise TrainingFailed(f"training {job.chain} ended {end}: {_last_words(job.path / 'trainer.log')} (log: {job.path / 'trainer.log'})")


def _run_once(job: TrainingJob, folder: Path, on_poll: Callable[[], None], bootstrap: dict[str, str] | None) -> str:
    """One life of the job, from submission or attachment to its end: its status, or LOST."""
    head = ensure_head(folder, job)
    from ray.job_submission import JobStatus, JobSubmissionClient  # reads the token's place from the environment when it is imported

    try:
        client = JobSubmissionClient(head.dashboard)
        name = _attach_name(client, job) or _submit(client, job, bootstrap)
    except OSError:
        if _gone(folder):
            return LOST
        raise
    while True:
        on_poll()
        if _running(folder) is None:
            return LOST
        try:
            status = client.get_job_status(name)
        except (OSError, RuntimeError):  # requests' ConnectionError is an OSError, and none of Python's own ConnectionErrors
            time.sleep(POLL_S)  # the dashboard answers late or never again: the head's file decides which
            continue
        if status in (JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.STOPPED):
            return LOST if status == JobStatus.FAILED and _died(client.get_job_info(name)) else str(status.value)
        time.sleep(POLL_S)


def _submit(client: Any, job: TrainingJob, bootstrap: dict[str, str] | None) -> str:
    if bootstrap is not None:
        (job.path / "pipes.json").write_text(json.dumps(bootstrap), encoding="utf-8")
    command = [sys.executable, "-m", "verl_jobs.entry", str(job.path / "job.json")]
    name: str = client.submit_job(
        entrypoint=f"exec {shlex.join(command)} >> {shlex.quote(str(job.path / 'trainer.log'))} 2>&1",
        submission_id=f"{job.chain}-{job.key[:10]}-{time.time_ns() // 1_000_000}",
        entrypoint_num_cpus=0,
    )
    return name


def _gone(folder: Path) -> bool:
    """Whether this Ray has ended, or does so within the time that its head needs to clear up."""
    deadline = time.monotonic() + GONE_S
    while _running(folder) is not None and time.monotonic() < deadline:
        time.sleep(POLL_S)
    return _running(folder) is None


def _attach_name(client: Any, job: TrainingJob) -> str | None:
    """The submission of this very work that is still alive, if there is one."""
    prefix = f"{job.chain}-{job.key[:10]}-"
    alive = [each for each in client.list_jobs() if (each.submission_id or "").startswith(prefix) and not each.status.is_terminal()]
    return alive[0].submission_id if alive else None


def _died(info: Any) -> bool:
    """Whether a signal ended the training process, or a Ray process under it: exit codes as subprocess or a shell tells them."""
    code = info.driver_exit_code
    return code is None or code < 0 or code == DIED or code > 128


def _running(folder: Path) -> Head | None:
    try:
        about = json.loads((folder / "head.json").read_text(encoding="utf-8"))
        os.kill(about["pid"], 0)
    except (FileNotFoundError, ProcessLookupError, ValueError):
        return None
    return Head(about["address"], about["dashboard"])


def _spawn(folder: Path, job: TrainingJob) -> None:
    _launch(folder, environment(job.training, job.path) | {"RATCHET_RANKS": str(job.training.ranks)} | _threads(job.training.threads))


def _threads(threads: int) -> dict[str, str]:
    return {"OMP_NUM_THREADS": str(threads)} if threads else {}


def _launch(folder: Path, extra: dict[str, str]) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("CUDA_VISIBLE_DEVICES", "RAY_ADDRESS")}
    # The last one is Ray's switch for a machine alone: its servers bind 127.0.0.1, not every interface.
    environment |= extra | {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(_token(folder)), "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
    log = (folder / "head.log").open("ab")
    command = [sys.executable, "-m", "resources.ray_head", str(folder)]
    subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment, start_new_session=True)


def _token(folder: Path) -> Path:
    """Ray's own token, made once a home and readable by this user alone."""
    path = folder / "token"
    if not path.exists():
        handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        os.write(handle, secrets.token_hex(32).encode())
        os.close(handle)
    return path


def _last_words(log: Path) -> str:
    lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()] if log.exists() else []
    telling = [line for line in lines if "Error" in line or "error:" in line or "died" in line]
    return (telling or lines or ["it left no log"])[-1].strip()[:300]
