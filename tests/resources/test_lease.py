"""One process trains at a time, a dead process holds no lease, and a late one records nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from assets.promotion import gate
from assets.stages import STAGES
from resources import lease
from resources.home import Home
from resources.lease import LeaseLost, LeasePlace
from resources.progress import Progress
from resources.run_context import RunContext, StageContext, StageOutput
from resources.settings import Settings
from resources.stage_report import StageReport
from tests.lease_holder import holding
from tests.open_runs import open_test_run
from tests.resources.postgres import Server
from tests.verl_jobs.test_job import a_job
from verl_jobs.trainer.fence import check_fence, raise_fence
from verl_jobs.trainer.trainer_lease import TrainingEnded


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    if request.param == "sqlite":
        return Home(tmp_path / "a home")
    server: Server = request.getfixturevalue("server")
    return Home(tmp_path / "a home", server.fresh(f"lease_{time.time_ns()}"))


def test_a_held_lease_names_its_holder_and_time(home: Home) -> None:
    with holding(home.lease, "chain-0007") as process:
        with pytest.raises(lease.LeaseHeld, match=rf"chain-0007\b.*\b{process.pid}\b.*20.*UTC"):
            lease.take(home.lease, "chain-0008")
        holder = lease.holder(home.lease)
        assert holder is not None
        assert (holder.pid, holder.run_id) == (process.pid, "chain-0007")


def test_a_killed_holder_releases_the_lease(home: Home) -> None:
    with holding(home.lease) as process:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert lease.holder(home.lease) is None
        assert lease.take(home.lease, "chain-0008")
    lease.release(home.lease)


def test_a_holder_that_ends_in_order_is_replaced_at_once_by_another_home(
    home: Home, tmp_path: Path
) -> None:
    with holding(home.lease) as process:
        assert process.stdin
        process.stdin.close()
        process.wait()
    other = LeasePlace(home.lease.place, tmp_path / "another")
    assert lease.take(other, "chain-0008")
    lease.release(other)


def test_a_stopped_holder_of_the_same_machine_and_home_keeps_it(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "TERM_S", 0.0)
    with holding(home.lease) as process:
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(lease.LeaseHeld):
            lease.take(home.lease, "chain-0008")


def test_the_holder_may_take_its_lease_twice(home: Home) -> None:
    token = lease.take(home.lease, "chain-0001")
    assert lease.take(home.lease, "chain-0002") == token
    holder = lease.holder(home.lease)
    assert holder is not None
    assert (holder.pid, holder.run_id) == (os.getpid(), "chain-0002")
    lease.release(home.lease)
    assert lease.holder(home.lease) is None


def test_reading_the_holder_creates_no_file(tmp_path: Path) -> None:
    assert lease.holder(Home(tmp_path).lease) is None
    assert not list(tmp_path.iterdir())


def test_each_holder_has_a_higher_token(home: Home) -> None:
    tokens = []
    for name in ("chain-0001", "chain-0002"):
        tokens.append(lease.take(home.lease, name))
        lease.release(home.lease)
    assert tokens[0] < tokens[1]


def test_a_home_that_was_lost_trains_on_under_a_later_token(tmp_path: Path) -> None:
    """Its database is begun again or restored, and the mirror of its training remembers tokens."""
    job = a_job(tmp_path / "job", store=str(tmp_path / "mirror"))
    job.path.mkdir()
    for name in ("lost", "new"):
        place = Home(tmp_path / name).lease
        for run in ("chain-0001", "chain-0002") if name == "lost" else ("chain-0002",):
            token = lease.take(place, run)
            lease.release(place)
        raise_fence(job, token)
    check_fence(job)


@pytest.mark.slow
def test_a_holder_of_another_home_that_stands_still_is_replaced_and_then_records_nothing(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first home's process is stopped, and wakes after the second one took over."""
    monkeypatch.setattr(lease, "TERM_S", 2.0)
    url = server.fresh(f"two_{time.time_ns()}")
    one, two = Home(tmp_path / "one", url), Home(tmp_path / "two", url)
    with holding(one.lease) as process:
        with pytest.raises(lease.LeaseHeld):
            lease.take(two.lease, "chain-0001")
        process.send_signal(signal.SIGSTOP)
        taken_over(two.lease)
        process.send_signal(signal.SIGCONT)
        assert said(process, "lease.check(home.lease)") == "LeaseLost"
        assert said(process, "lease.take(home.lease, 'chain-0002')") == "LeaseLost"
        assert said(process, "import time; time.sleep(1); lease.check_renewal(home.lease)") == (
            "LeaseLost"
        )
    lease.check(two.lease)
    lease.release(two.lease)


def taken_over(place: LeasePlace) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            lease.take(place, "chain-0001")
            return
        except lease.LeaseHeld:
            time.sleep(0.1)
    raise AssertionError("the lease of the stopped holder was never free")


def said(process: subprocess.Popen[str], action: str) -> str:
    """Let the holder do something; return how it ended."""
    assert process.stdin
    assert process.stdout
    process.stdin.write(f"{action}\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


@pytest.fixture
def late(home: Home) -> Iterator[StageContext]:
    """A stage of a process that took the lease, and lost it since."""
    changes = (f"storage.ledger={home.database}",) if home.database else ()
    context = RunContext.of(Settings(Home(home.path), changes=changes))
    context.home.make()
    run = open_test_run(context.home.runs, "chain-0001")
    lease.take(context.home.lease, "chain-0001")
    with context.home.lease.database.writing() as cursor:  # what another process's take writes
        cursor.execute("UPDATE training_lease SET token = token + 1, host = 'another'")
    yield StageContext(context, run, StageReport(Progress(run.progress_file, "checkpoint")))
    lease.release(context.home.lease)


def test_it_publishes_nothing(late: StageContext) -> None:
    with pytest.raises(LeaseLost, match="chain-0001 has lost the training lease to chain-0001"):
        late.artifact(STAGES["checkpoint"], lambda _: StageOutput(), inputs={}, config={})
    assert late.store.names("checkpoints") == ["checkpoint"]
    assert late.store.versions("checkpoints", "checkpoint") == []


def test_it_promotes_nothing(late: StageContext) -> None:
    with pytest.raises(LeaseLost):
        gate(late)
    assert late.run_context.ledger.history() == []


def test_it_saves_nothing(tmp_path: Path) -> None:
    mirror = str(tmp_path / "mirror")
    here, there = (a_job(tmp_path / name, store=mirror) for name in ("here", "there"))
    for job in (here, there):
        job.path.mkdir()
    raise_fence(here, 1)
    check_fence(here)
    raise_fence(there, 2)
    check_fence(there)
    with pytest.raises(TrainingEnded, match="another process has taken the training lease over"):
        check_fence(here)
    with pytest.raises(TrainingEnded):
        raise_fence(here, 1)
