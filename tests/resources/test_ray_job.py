"""Owners of a training start, die, cancel and return: real private Ray, real jobs, toy training.

An owner that dies or is interrupted is a process, any other one a thread.
tests/verl_jobs/test_remote_checkpoints.py tests what verl does on a notice;
tests/journeys/test_chaos.py (`make soak`) does so with real trainings.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from resources.ray import head as ray_head
from resources.ray import job as ray_job
from resources.ray import private as private_ray
from resources.ray.job import train
from resources.ray.private import Private, TrainingFailed
from tests.journeys.demo_run import wait_until
from tests.resources.toy_training import TERM_S
from tests.verl_jobs.test_job import a_job
from verl_jobs import faults
from verl_jobs.config.training import Training
from verl_jobs.job import TrainingJob

PATIENCE_S = 280.0  # for what takes seconds on an idle machine
pytestmark = [pytest.mark.timeout(2 * PATIENCE_S)]

OWNER = (
    "import sys; from pathlib import Path; from resources.ray.private import Private\n"
    "from resources.ray.job import train\n"
    "from verl_jobs.job import TrainingJob\n"
    "job = TrainingJob.read(Path(sys.argv[1]))\n"
    "train(job, Private(Path(sys.argv[2]), job), entry='toy_training')"
)
IN_DAGSTER = (
    "import dagster as dg\n@dg.op\ndef trains():\n    "
    + OWNER.replace("\n", "\n    ")
    + "\n@dg.job(executor_def=dg.in_process_executor)\ndef run():\n    trains()\n"
    + "instance = dg.DagsterInstance.ephemeral()\n"
    + "result = run.execute_in_process(instance=instance, raise_on_error=False)\n"
    + "print('success', result.success)"
)
WITH_BUDGET = OWNER.replace("train(job, ", "train(job, on_poll=poll, ray=").replace(
    "job = ",
    "from resources.cost import BudgetSpent\n"
    "def poll():\n    if (job.path / 'spent').exists(): raise BudgetSpent('it is spent')\n"
    "job = ",
)
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{ROOT}:{Path(__file__).parent}")
        # The toy needs none of the modules that Ray's workers import first for a real training.
        for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH", ray_head.PRELOADED):
            patch.setenv(name, "")
        private_ray.ensure_head(folder, a_job(folder))
        yield folder
        # The other processes of Ray end with the head.
        os.kill(json.loads((folder / "head.json").read_text())["pid"], signal.SIGKILL)


@pytest.fixture
def job(tmp_path: Path) -> TrainingJob:
    job = a_job(tmp_path, run_id=tmp_path.name)
    job.write()
    return job


def an_owner(job: TrainingJob, cluster: Path, program: str = OWNER) -> subprocess.Popen[bytes]:
    with (job.path / "owner.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-c", program, str(job.path / "job.json"), str(cluster)],
            stdout=log,
            stderr=log,
        )


@pytest.fixture
def owned(cluster: Path) -> Iterator[Callable[[TrainingJob], Future[None]]]:
    """Start an owner in a thread, and return the end of its training."""
    jobs: list[TrainingJob] = []

    def start(job: TrainingJob) -> Future[None]:
        jobs.append(job)
        return pool.submit(train, job, Private(cluster, job), entry="toy_training")

    with ThreadPoolExecutor() as pool:
        yield start
        for job in jobs:  # otherwise, if a test fails, its thread never ends
            (job.path / "go").touch()


def begins(job: TrainingJob, owner: subprocess.Popen[bytes] | Future[None], lines: int = 1) -> None:
    """Wait until the training has logged so many lines, or its owner has ended without them."""

    def ended() -> bool:
        return owner.done() if isinstance(owner, Future) else owner.poll() is not None

    wait_until(lambda: len(log_lines(job)) >= lines or ended(), PATIENCE_S)
    log = job.path / "owner.log"
    assert len(log_lines(job)) >= lines, log.read_text() if log.exists() else owner


def log_lines(job: TrainingJob) -> list[str]:
    log = job.path / "toy.log"
    return log.read_text().splitlines() if log.exists() else []


def client_of(cluster: Path) -> Any:
    from ray.job_submission import JobSubmissionClient

    head = private_ray._running(cluster)
    assert head
    # An earlier test may have imported ray, which reads its settings once, so pass the token.
    return JobSubmissionClient(
        head.dashboard,
        headers={"Authorization": f"Bearer {private_ray._token(cluster).read_text().strip()}"},
    )


def jobs_of(job: TrainingJob, cluster: Path) -> list[Any]:
    return [
        each
        for each in client_of(cluster).list_jobs()
        if (each.submission_id or "").startswith(f"{job.run_id}-{job.key[:10]}-")
    ]


@pytest.mark.slow
def test_a_new_owner_attaches_to_the_running_job(
    job: TrainingJob, cluster: Path, owned: Callable[[TrainingJob], Future[None]]
) -> None:
    first = an_owner(job, cluster)
    begins(job, first)
    first.kill()
    first.wait()
    second = owned(job)
    time.sleep(TERM_S + 2)  # longer than the lease, which the second owner must renew
    assert len(log_lines(job)) == 1, log_lines(job)
    (job.path / "go").touch()
    second.result(PATIENCE_S)
    assert len(jobs_of(job, cluster)) == 1
    assert job.done is not None


@pytest.mark.slow
def test_equal_run_names_in_two_homes_do_not_collide(
    job: TrainingJob, owned: Callable[[TrainingJob], Future[None]]
) -> None:
    (job.path / "other").mkdir()
    other = a_job(job.path / "other", run_id=job.run_id)
    other.write()
    assert other.key == job.key
    owners = {each.folder: owned(each) for each in (job, other)}
    for each in (job, other):
        begins(each, owners[each.folder])
    for each in (job, other):
        (each.path / "go").touch()
        owners[each.folder].result(PATIENCE_S)
        assert each.done is not None


@pytest.mark.slow
def test_a_stopped_ray_job_has_time_to_save(
    job: TrainingJob, cluster: Path, owned: Callable[[TrainingJob], Future[None]]
) -> None:
    """`ray job stop` sends SIGTERM, and by default SIGKILL after 3 s."""
    (job.path / "slow").write_text("5")
    owner = owned(job)
    begins(job, owner)
    [submitted] = jobs_of(job, cluster)
    client_of(cluster).stop_job(submitted.submission_id)
    with pytest.raises(TrainingFailed, match="ended STOPPED"):
        owner.result(PATIENCE_S)
    assert log_lines(job)[1:] == ["asked to end", "saves and ends: SIGTERM"]


@pytest.mark.soak
def test_an_orphaned_job_saves_and_the_next_owner_restarts_it(
    job: TrainingJob, cluster: Path
) -> None:
    first = an_owner(job, cluster)
    begins(job, first)
    first.kill()
    first.wait()
    assert wait_until(lambda: len(log_lines(job)) == 2, PATIENCE_S)
    assert log_lines(job)[1] == "saves and ends: nobody renewed its lease"
    second = an_owner(job, cluster)
    begins(job, second, 3)
    (job.path / "go").touch()
    assert second.wait(PATIENCE_S) == 0
    assert len(jobs_of(job, cluster)) == 2


@pytest.mark.parametrize(
    ("program", "how", "why"),
    [
        pytest.param(
            OWNER, signal.SIGINT, "KeyboardInterrupt", id="Ctrl-C", marks=pytest.mark.soak
        ),
        pytest.param(
            IN_DAGSTER,
            signal.SIGTERM,
            "DagsterExecutionInterruptedError",
            id="a terminated Dagster run",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_an_interrupted_owner_ends_its_job_after_a_save(
    job: TrainingJob, cluster: Path, program: str, how: signal.Signals, why: str
) -> None:
    process = an_owner(job, cluster, program)
    begins(job, process)
    process.send_signal(how)
    process.wait(PATIENCE_S)
    assert log_lines(job)[1] == f"saves and ends: cancelled ({why})"
    assert all(each.status.is_terminal() for each in jobs_of(job, cluster))


@pytest.mark.soak
def test_a_spent_budget_ends_a_job_after_a_save(job: TrainingJob, cluster: Path) -> None:
    process = an_owner(job, cluster, WITH_BUDGET)
    begins(job, process)
    (job.path / "spent").touch()
    process.wait(PATIENCE_S)
    assert log_lines(job)[1] == "saves and ends: cancelled (BudgetSpent)"
    assert all(each.status.is_terminal() for each in jobs_of(job, cluster))


@pytest.mark.slow
def test_attempts_are_counted_from_the_last_save(
    job: TrainingJob, owned: Callable[[TrainingJob], Future[None]]
) -> None:
    """A training that saves may die more than three times; one that does not save may not."""
    (job.path / "mortal").write_text("saves")
    owner = owned(job)
    begins(job, owner, 4)
    (job.path / "mortal").write_text("nothing")
    with pytest.raises(TrainingFailed):
        owner.result(PATIENCE_S)
    saves = len(list((job.path / "saves").iterdir()))
    assert len(log_lines(job)) == saves + 3


@pytest.mark.soak
def test_a_training_survives_a_pause_of_all_processes(job: TrainingJob, cluster: Path) -> None:
    """The pause is longer than any lease, as for a paused container or a moved machine."""
    owner = an_owner(job, cluster)
    begins(job, owner)
    head = psutil.Process(json.loads((cluster / "head.json").read_text())["pid"])
    everything = [psutil.Process(owner.pid), head, *head.children(recursive=True)]
    for process in everything:
        process.suspend()
    time.sleep(45)
    for process in everything:
        process.resume()
    time.sleep(25)  # longer than the head's grace period and Ray's timeout for a node
    assert head.is_running()
    assert len(log_lines(job)) == 1
    (job.path / "go").touch()
    assert owner.wait(PATIENCE_S) == 0
    assert len(jobs_of(job, cluster)) == 1


@pytest.mark.soak
def test_a_lost_trainer_is_restarted_although_ray_says_it_runs(
    job: TrainingJob, cluster: Path
) -> None:
    owner = an_owner(job, cluster)
    begins(job, owner)
    time.sleep(5 * private_ray.POLL_S)  # the owner has seen the lock
    trainer = psutil.Process(int(log_lines(job)[0].split()[1]))
    head = json.loads((cluster / "head.json").read_text())["pid"]
    supervisor = trainer.parent()
    assert supervisor
    supervisor.suspend()  # Ray's record of the job stays as it is
    trainer.kill()
    begins(job, owner, 2)
    assert json.loads((cluster / "head.json").read_text())["pid"] != head
    assert not supervisor.is_running()
    (job.path / "go").touch()
    assert owner.wait(PATIENCE_S) == 0
    assert job.done is not None


@pytest.mark.slow
def test_a_dashboard_that_does_not_answer_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(OSError) as raised:
        ray_job._client(f"http://127.0.0.1:{silent.getsockname()[1]}", {}, limit_s=0.5)
    assert ray_job._unresponsive(raised.value)


@pytest.mark.slow
def test_a_trainer_that_stands_still_is_ended_named_and_started_again(
    tmp_path: Path,
    owned: Callable[[TrainingJob], Future[None]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ray_job, "MARGIN_S", 1.0)
    job = a_job(tmp_path, run_id=tmp_path.name, training=Training(stall_s=15.0))
    owner = owned(job)
    begins(job, owner)
    trainer = psutil.Process(int(log_lines(job)[0].split()[1]))
    trainer.suspend()
    begins(job, owner, 2)
    assert not trainer.is_running()
    [fault] = faults.read(job.path)
    assert fault.what.startswith("no progress for")
    assert f"in the phase 'toy'; stopped processes: toy_training (process {trainer.pid})" in (
        fault.what
    )
    (job.path / "go").touch()
    owner.result(PATIENCE_S)
    assert job.done is not None
