"""Training as a Ray job: submitted once, then attached to.

In: a TrainingJob, and the Ray to use (resources/ray/private.py). Out: the end of the job. The
submission's name follows from the pipeline run and the config, so that a step that died and is
retried finds its job. A job that failed, or was killed with its cluster, is submitted again and
resumes from its last complete checkpoint. If the cluster stays unreachable, it resumes on this
machine (resources/ray/place.py checks whether it has room).
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from artifacts.atomic import write_atomic
from resources import lease
from resources.apart import apart
from resources.home import NotReady
from resources.ray import head as ray_head
from resources.ray.end import DEAD, End, end_of, last_error
from resources.ray.private import POLL_S, Joined, Private, TrainingFailed
from verl_jobs import faults
from verl_jobs.job import SWEEP, TrainingJob, next_attempt
from verl_jobs.planner.engine import check_engine
from verl_jobs.planner.preflight import check
from verl_jobs.trainer import fence, progress, trainer_lease
from verl_jobs.trainer.checkpoints import complete_saves

TRAINER = "verl_jobs.trainer.entry"
# ray/dashboard/modules/job/job_head.py: the node's agent is not there yet, or is already gone.
NO_AGENT = ("No available agent", "Cannot connect to host")
CLEAN_UP_S = 20.0  # time that a head needs to clean up
END_S = 60.0  # seconds that a cancelled training has to write a checkpoint
SUBMISSION_S = 15.0  # longer than Ray looks for an agent before it refuses a job
LOG = "trainer.log"
# File in the job's folder: its cluster was unreachable, and the job stays on this machine.
MOVED = "moved"
MEMORY_S = 30.0  # wait after a lack of memory: what took it may end
# Seconds without the trainer's lock after which a training is lost, whatever its Ray says: from its
# submission, and once it was held. A machine that slept may leave a Ray whose records say RUNNING
# and whose processes have ended.
BEGIN_S, GONE_S = 180.0, 30.0
# A stuck training ends itself (verl_jobs/trainer/entry.py), unless its driver itself stands still.
MARGIN_S = 60.0
REQUEST_S = 10.0  # of a question to Ray's dashboard, once the job is submitted


def train(
    job: TrainingJob,
    ray: Private | Joined,
    *,
    attempts: int = 3,
    on_poll: Callable[[], None] = lambda: None,
    bootstrap: dict[str, str] | None = None,
    entry: str = TRAINER,
    held: lease.LeasePlace | None = None,
) -> None:
    """Run the job until it has finished: submit it, or attach to it.

    After a process died the job is submitted again, until `attempts` in a row made no new
    checkpoint. Meanwhile this process renews the job's lease. An interruption (Ctrl-C, a run
    terminated in Dagster) ends the job with a checkpoint.
    bootstrap: Dagster Pipes parameters. entry: the module that trains. held: the training lease
    under which this process trains; once it is lost, nothing more is saved. Raises TrainingFailed
    and LeaseLost; and CannotTrain or UnfitStart before anything is started or written.
    """
    # next_attempt above 1: the second attempt of a job that KubeRay started.
    begun = (job.path / LOG).exists() or next_attempt(job.path) > 1
    if entry == TRAINER and not begun:
        apart(check, job)
        if isinstance(ray, Private):
            check_engine(job.training)
    job.write()
    if held and (token := lease.token(held)):
        try:
            fence.raise_fence(job, token)
        except trainer_lease.TrainingEnded as error:
            raise TrainingFailed(str(error)) from error
    # The private Ray may have been started for another run of the sweep.
    if "WANDB_SWEEP_ID" in os.environ:
        write_atomic(
            job.path / "sweep.json",
            json.dumps({name: os.environ[name] for name in SWEEP if name in os.environ}),
        )

    def poll() -> None:
        try:
            if held:
                lease.check_renewal(held)
        except lease.LeaseLost:
            fence.revoke(job.path)
            raise
        on_poll()

    attempt, reached = 1, _newest_save(job)
    while job.done is None:
        with trainer_lease.renewed_lease(job.path):
            ray = _or_here(job, ray) if begun else ray
            end = _run_once(job, ray, poll, bootstrap, entry)
        begun = True
        if job.done is not None:
            return
        if (saved := _newest_save(job)) > reached:
            attempt, reached = 0, saved
        if attempt == attempts or end.status != DEAD:
            raise TrainingFailed(
                f"training {job.run_id} ended {end.status}: {end.cause} (log: {job.path / LOG})"
            )
        attempt += 1
        start = f"step {reached}" if reached else "its start"
        known = end.memory or progress.NO_PROGRESS in end.cause
        why = end.cause if known else "a process of the training died"
        faults.record(job.path, f"{why}: it resumes from {start}, attempt {attempt} of {attempts}")
        if end.memory:
            time.sleep(MEMORY_S)


def _newest_save(job: TrainingJob) -> int:
    return max(complete_saves(job.path / "saves"), default=0)


def _or_here(job: TrainingJob, ray: Private | Joined) -> Private | Joined:
    """Return the Ray on which a training that has begun continues.

    This is the joined one if it responds within its patience. Otherwise it is this machine's own,
    from then on. Raises TrainingFailed if this machine has no room for it.
    """
    if isinstance(ray, Private) or ray.here is None:
        return ray
    silent = f"Ray at {ray.address} has not responded for {ray.patience_s:.0f} s"
    moved = job.path / MOVED
    if not moved.exists() and ray.back(ray.patience_s):
        return ray
    try:
        here = ray.here()
    except NotReady as error:
        raise TrainingFailed(f"{silent}, and the training cannot resume here: {error}") from error
    if not moved.exists():
        _await_its_end(job, silent)
        faults.record(job.path, f"{silent}: the training resumes here, on one node")
        moved.touch()
    return here


def _await_its_end(job: TrainingJob, why: str) -> None:
    """Wait until the old trainer has ended.

    If only its dashboard is gone, the trainer is alive: it saves and ends. If its Ray is gone, it
    notices within a minute. Raises TrainingFailed if it does neither.
    """
    deadline = trainer_lease.Deadline(2 * END_S)
    while not deadline.passed():
        with trainer_lease.training_lock(job.path) as alone:
            if alone:
                return
        trainer_lease.give_notice(job.path, why)
        time.sleep(POLL_S)
    raise TrainingFailed(
        f"{why}, and its trainer still runs in {job.path}: end that process, then start again"
    )


def _run_once(
    job: TrainingJob,
    ray: Private | Joined,
    on_poll: Callable[[], None],
    bootstrap: dict[str, str] | None,
    entry: str,
) -> End:
    """Run one attempt of the job, from submission or attachment to its end."""
    dashboard, log = ray.dashboard(), job.path / LOG
    # Imported here: the module reads the token's path from the environment on import.
    from ray.job_submission import JobStatus

    try:
        client = _client(dashboard, ray.headers())
        name = _attach_name(client, job) or _submit(client, job, bootstrap, ray.submission(), entry)
    except (OSError, RuntimeError) as error:
        if isinstance(error, OSError) and _has_ended(ray):
            return End(DEAD, last_error(log))
        if isinstance(ray, Private) and _unresponsive(error):
            return _end_stuck(ray, f"submission: {error}", ray_head.START_S)
        raise
    trainer, client.limit_s = Witness(job), REQUEST_S
    try:
        while True:
            on_poll()
            if not ray.there():
                return End(DEAD, last_error(log))
            if isinstance(ray, Private) and trainer.gone():
                ray.end()
                return End(DEAD, last_error(log))
            if trainer.stuck():
                if isinstance(ray, Joined):
                    _stop(client, name)
                return _end_stuck(ray, trainer.watch.phase, trainer.watch.quiet)
            if (status := _status(client, name)) is not None and status.is_terminal():
                if status == JobStatus.FAILED:
                    return end_of(client.get_job_info(name), log)
                return End(str(status.value), last_error(log))
            time.sleep(POLL_S)
    except Exception:
        raise
    except BaseException as interruption:
        # KeyboardInterrupt or Dagster's DagsterExecutionInterruptedError: a person cancels the job
        _cancel(client, name, job, ray, type(interruption).__name__)
        raise


class Witness:
    """Tells by the files of a training's folder that its trainer has ended, or stands still."""

    def __init__(self, job: TrainingJob) -> None:
        self.folder, self.seen, self.silence = job.path, False, trainer_lease.Silence()
        self.watch = progress.ProgressWatch(job.path, job.training.stall_s, REQUEST_S)

    def stuck(self) -> bool:
        """Return whether there was no progress, and the training did not end itself."""
        return self.watch.look() > self.watch.limit + MARGIN_S

    def gone(self) -> bool:
        """Return whether nobody has held the lock for too long; a paused trainer holds it."""
        held = trainer_lease.lock_holder(self.folder) is not None
        self.seen = self.seen or held
        return self.silence.seconds(heard=held) > (GONE_S if self.seen else BEGIN_S)


def _end_stuck(ray: Private | Joined, phase: str, seconds: float) -> End:
    """Return the end of a training that stands still; kill a private Ray with its processes."""
    if isinstance(ray, Joined):
        return End(DEAD, progress.fault(seconds, phase, None))
    end = End(DEAD, progress.fault(seconds, phase, ray.head()))
    ray.end()
    return end


def _stop(client: Any, name: str) -> None:
    """Stop a job, and wait until Ray has recorded its end."""
    with contextlib.suppress(OSError, RuntimeError):
        client.stop_job(name)
    deadline = trainer_lease.Deadline(END_S)
    while not deadline.passed():
        if (status := _status(client, name)) is not None and status.is_terminal():
            return
        time.sleep(POLL_S)


def _client(dashboard: str, headers: dict[str, str], limit_s: float = ray_head.START_S) -> Any:
    """Return Ray's client of jobs, whose requests end: by default they wait for ever."""
    from ray.job_submission import JobSubmissionClient

    class Client(JobSubmissionClient):
        limit_s: float

        def _do_request(self, method: str, endpoint: str, **options: Any) -> Any:
            return super()._do_request(method, endpoint, **({"timeout": self.limit_s} | options))

    Client.limit_s = limit_s
    return Client(dashboard, headers=headers)


def _unresponsive(error: Exception) -> bool:
    """Return whether Ray's dashboard or its node's agent is there and does not answer."""
    # The class is of requests, which is a dependency of Ray and not ours.
    timeout = any(each.__name__ == "Timeout" for each in type(error).__mro__)
    return timeout or any(message in str(error) for message in NO_AGENT)


def _status(client: Any, name: str) -> Any:
    """Return the job's status, or None if the dashboard responds late or not at all."""
    try:
        return client.get_job_status(name)
    # requests' ConnectionError is an OSError, but not Python's own ConnectionError.
    except (OSError, RuntimeError):
        return None


def _cancel(client: Any, name: str, job: TrainingJob, ray: Private | Joined, why: str) -> None:
    """Let the training save and end; stop it if it has not within END_S."""
    deadline = trainer_lease.Deadline(END_S)
    while ray.there() and not deadline.passed():
        # Repeatedly: a training that begins now removes an older notice.
        trainer_lease.give_notice(job.path, f"cancelled ({why})")
        if (status := _status(client, name)) is not None and status.is_terminal():
            return
        time.sleep(POLL_S)
    if ray.there():
        client.stop_job(name)


def _submit(
    client: Any,
    job: TrainingJob,
    bootstrap: dict[str, str] | None,
    options: dict[str, Any],
    entry: str,
) -> str:
    (job.path / progress.FILE).unlink(missing_ok=True)  # of the attempt before
    if bootstrap is not None:
        (job.path / "pipes.json").write_text(json.dumps(bootstrap), encoding="utf-8")
    command = [
        "python" if options else sys.executable,
        "-m",
        entry,
        str(job.path / "job.json"),
        trainer_lease.OWNED,
    ]
    name = f"{job.run_id}-{job.key[:10]}-{time.time_ns() // 1_000_000}"
    entrypoint = f"exec {shlex.join(command)} >> {shlex.quote(str(job.path / LOG))} 2>&1"
    deadline = trainer_lease.Deadline(ray_head.START_S, still_s=SUBMISSION_S)
    while _status(client, name) is None:
        try:
            client.submit_job(
                entrypoint=entrypoint, submission_id=name, entrypoint_num_cpus=0, **options
            )
        except RuntimeError as error:
            # The dashboard responds before its node's agent has started, and for some seconds
            # after the agent has ended.
            if not any(message in str(error) for message in NO_AGENT) or deadline.passed():
                raise
            time.sleep(POLL_S)
    return name


def _has_ended(ray: Private | Joined) -> bool:
    """Return whether this Ray has ended, or ends within the time its head needs to clean up."""
    deadline = trainer_lease.Deadline(CLEAN_UP_S)
    while ray.there() and not deadline.passed():
        time.sleep(POLL_S)
    return not ray.there()


def _attach_name(client: Any, job: TrainingJob) -> str | None:
    """Return the live submission of this job in this folder, or None.

    The folder is compared because homes that share a Ray use the same names for their pipeline
    runs.
    """
    prefix, file = f"{job.run_id}-{job.key[:10]}-", (job.path / "job.json").resolve()
    for each in client.list_jobs():
        if (each.submission_id or "").startswith(prefix) and not each.status.is_terminal():
            words = (word for word in shlex.split(each.entrypoint) if word.endswith("job.json"))
            if any(Path(word).resolve() == file for word in words):
                return str(each.submission_id)
    return None
