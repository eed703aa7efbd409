"""Owners of a training that come, die, cancel and come back, on a real private Ray with its real jobs; the training itself is a toy.

What verl does on a notice is tested in tests/verl_jobs/test_mirror.py, and for real by `make soak` (tests/journeys/test_chaos.py).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from resources.ray import private as private_ray
from tests.journeys.demo_run import wait_until
from tests.resources.toy_training import TERM_S
from tests.verl_jobs.test_job import a_job
from verl_jobs.job import TrainingJob

pytestmark = [pytest.mark.timeout(400)]

OWNER = (
    "import sys; from pathlib import Path; from resources.ray.private import Private; from resources.ray.job import train\n"
    "from verl_jobs.job import TrainingJob\n"
    "job = TrainingJob.read(Path(sys.argv[1]))\n"
    "train(job, Private(Path(sys.argv[2]), job), entry='toy_training')"
)
IN_DAGSTER = (
    "import dagster as dg\n@dg.op\ndef trains():\n    "
    + OWNER.replace("\n", "\n    ")
    + "\n@dg.job(executor_def=dg.in_process_executor)\ndef run():\n    trains()\n"
    + "result = run.execute_in_process(instance=dg.DagsterInstance.ephemeral(), raise_on_error=False)\nprint('success', result.success)"
)
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{ROOT}:{Path(__file__).parent}")
        for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH"):
            patch.setenv(name, "")
        private_ray.ensure_head(folder, a_job(folder))
        yield folder
        os.kill(
            json.loads((folder / "head.json").read_text())["pid"], signal.SIGKILL
        )  # Ray's processes go with it


@pytest.fixture
def job(tmp_path: Path) -> TrainingJob:
    made = a_job(tmp_path, chain=tmp_path.name)
    made.write()
    return made


def an_owner(job: TrainingJob, cluster: Path, program: str = OWNER) -> subprocess.Popen[bytes]:
    with (job.path / "owner.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-c", program, str(job.path / "job.json"), str(cluster)],
            stdout=log,
            stderr=log,
        )


def said(job: TrainingJob) -> list[str]:
    log = job.path / "toy.log"
    return log.read_text().splitlines() if log.exists() else []


def client_of(cluster: Path) -> Any:
    from ray.job_submission import JobSubmissionClient

    head = private_ray._running(cluster)
    assert head
    # told here: a test before this one may have imported ray, which reads its settings once
    return JobSubmissionClient(
        head.dashboard,
        headers={"Authorization": f"Bearer {private_ray._token(cluster).read_text().strip()}"},
    )


def jobs_of(job: TrainingJob, cluster: Path) -> list[Any]:
    return [
        each
        for each in client_of(cluster).list_jobs()
        if (each.submission_id or "").startswith(f"{job.chain}-{job.key[:10]}-")
    ]


@pytest.mark.slow
def test_an_owner_that_dies_is_followed_by_one_that_finds_its_job(
    job: TrainingJob, cluster: Path
) -> None:
    first = an_owner(job, cluster)
    assert wait_until(lambda: said(job), 120), (job.path / "owner.log").read_text()
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    second = an_owner(job, cluster)
    assert not wait_until(lambda: len(said(job)) > 1, TERM_S + 2), said(
        job
    )  # longer than the lease: the second one renews it
    (job.path / "go").touch()
    assert second.wait(60) == 0 and len(jobs_of(job, cluster)) == 1 and job.done == {}


@pytest.mark.slow
def test_two_homes_that_share_a_ray_have_a_job_each_though_their_chains_are_named_alike(
    job: TrainingJob, cluster: Path
) -> None:
    (job.path / "other").mkdir()
    other = a_job(job.path / "other", chain=job.chain)
    other.write()
    assert other.key == job.key
    owners = [an_owner(each, cluster) for each in (job, other)]
    assert wait_until(lambda: said(job) and said(other), 120), (
        other.path / "owner.log"
    ).read_text()
    for each in (job, other):
        (each.path / "go").touch()
    assert [owner.wait(60) for owner in owners] == [0, 0] and job.done == other.done == {}


@pytest.mark.slow
def test_what_ray_was_told_to_stop_has_the_time_to_save(job: TrainingJob, cluster: Path) -> None:
    """`ray job stop`: SIGTERM, and SIGKILL after Ray's own 3 s, where it is told nothing else."""
    (job.path / "slow").write_text("6")
    owner = an_owner(job, cluster)
    assert wait_until(lambda: said(job), 120), (job.path / "owner.log").read_text()
    [submitted] = jobs_of(job, cluster)
    client_of(cluster).stop_job(submitted.submission_id)
    assert owner.wait(60) == 1 and said(job)[1:] == ["asked to end", "saves and ends: SIGTERM"]
    assert "ended STOPPED" in (job.path / "owner.log").read_text()


@pytest.mark.soak
def test_an_orphan_saves_and_ends_and_the_next_owner_starts_it_again(
    job: TrainingJob, cluster: Path
) -> None:
    first = an_owner(job, cluster)
    assert wait_until(lambda: said(job), 120)
    first.kill()
    first.wait()
    assert (
        wait_until(lambda: len(said(job)) == 2, 90)
        and said(job)[1] == "saves and ends: nobody renewed its lease"
    )
    second = an_owner(job, cluster)
    assert wait_until(lambda: len(said(job)) == 3, 120)
    (job.path / "go").touch()
    assert second.wait(60) == 0 and len(jobs_of(job, cluster)) == 2


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
def test_an_owner_that_is_interrupted_ends_its_job_with_a_save(
    job: TrainingJob, cluster: Path, program: str, how: signal.Signals, why: str
) -> None:
    process = an_owner(job, cluster, program)
    assert wait_until(lambda: said(job), 120), (job.path / "owner.log").read_text()
    process.send_signal(how)
    process.wait(60)
    assert said(job)[1] == f"saves and ends: cancelled ({why})"
    assert all(each.status.is_terminal() for each in jobs_of(job, cluster))


@pytest.mark.slow
@pytest.mark.parametrize(("dying", "lives"), [("saves", 5), ("nothing", 3)])
def test_lives_are_counted_from_the_last_save(
    job: TrainingJob, cluster: Path, dying: str, lives: int
) -> None:
    """One that saves may die more often than three times, one that does not is given up after three."""
    (job.path / "mortal").write_text(dying)
    owner = an_owner(job, cluster)
    assert wait_until(lambda: len(said(job)) >= lives, 120), (job.path / "owner.log").read_text()
    if dying == "saves":
        (job.path / "go").touch()
        (job.path / "mortal").unlink()
    assert (owner.wait(60) == 0) == (dying == "saves")
    assert len(said(job)) == lives or (dying == "saves" and len(said(job)) > lives)


@pytest.mark.soak
def test_a_pause_of_all_its_processes_costs_a_training_nothing(
    job: TrainingJob, cluster: Path
) -> None:
    """Longer than any lease: a container that is paused, a machine that is moved."""
    owner = an_owner(job, cluster)
    assert wait_until(lambda: said(job), 120), (job.path / "owner.log").read_text()
    head = psutil.Process(json.loads((cluster / "head.json").read_text())["pid"])
    everything = [psutil.Process(owner.pid), head, *head.children(recursive=True)]
    for process in everything:
        process.suspend()
    time.sleep(45)
    for process in everything:
        process.resume()
    time.sleep(25)  # longer than the grace of the head, and than Ray needs to miss a node
    assert head.is_running() and len(said(job)) == 1
    (job.path / "go").touch()
    assert owner.wait(60) == 0 and len(jobs_of(job, cluster)) == 1
