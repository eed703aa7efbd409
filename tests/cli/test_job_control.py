"""Training runs are stopped and resumed from the command line."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import dagster as dg
import pytest

from cli.jobs.control import resume, stop
from pipelines.instance import prepare
from resources import lease
from resources.home import Home
from resources.run_context import PARTITION, TRAINING_TAGS
from resources.settings import Settings
from tests.cli.test_job_commands import output_of
from tests.open_runs import open_test_run

HOLDER = """
import signal, sys, time
from pathlib import Path
from resources import lease
from resources.home import Home
signal.signal(signal.SIGTERM, signal.SIG_DFL)
lease.take(Home(Path(sys.argv[1])).lease, "study-a")
time.sleep(600)
"""


TRAINING = """
import sys, time
from pathlib import Path
import dagster as dg
from resources import lease
from resources.home import Home

@dg.op
def train():
    lease.take(Home(Path(sys.argv[1])).lease, "chain-0001")
    time.sleep(600)

@dg.job
def pipeline():
    train()

if __name__ == "__main__":
    with dg.DagsterInstance.from_config(sys.argv[2]) as instance:
        tags = {"dagster/partition": "chain-0001"}
        pipeline.execute_in_process(instance=instance, tags=tags, raise_on_error=False)
"""


IN_BACKGROUND = """
import signal, time
from dagster._utils.interrupts import capture_interrupts
from pipelines.process import restore_sigint
signal.signal(signal.SIGINT, signal.SIG_IGN)
restore_sigint()
try:
    with capture_interrupts():  # as each of its runs does
        pass
    print("runs", flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    print("ended")
"""


@pytest.mark.slow
def test_a_run_in_a_background_job_ends_on_sigterm() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", IN_BACKGROUND], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    assert process.stdout.readline() == "runs\n"
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=60)[0] == "ended\n"


def test_a_stopped_study_names_the_command_that_resumes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "home")
    home.make()
    monkeypatch.setenv("RATCHET_HOME", str(home.path))
    changes = ("training.steps=4",)
    open_test_run(
        home.runs, "study-a", kind="study", changes=changes, why="ratchet train --seeds 3"
    )
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(home.path)]) as training:
        while lease.holder(home.lease) is None:
            time.sleep(0.05)
        text = output_of(stop, None)
        assert training.wait() != 0
    command = "`ratchet train --seeds 3 --profile small --set training.steps=4`"
    for output in (text, output_of(resume, settings=Settings.read())):
        assert "study-a" in output
        assert command in output


@pytest.mark.slow
def test_a_stopped_run_is_canceled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path / "home")
    home.make()
    monkeypatch.setenv("RATCHET_HOME", str(home.path))
    monkeypatch.setenv("DAGSTER_HOME", str(home.dagster))
    folder = prepare(home, Settings.read().profile.orchestration)
    command = [sys.executable, "-c", TRAINING, str(home.path), str(folder)]
    with subprocess.Popen(command) as training:
        while lease.holder(home.lease) is None:
            time.sleep(0.05)
        output_of(stop, None)
        training.wait()
    with dg.DagsterInstance.from_config(str(folder)) as instance:
        [run] = instance.get_runs()
    assert run.status is dg.DagsterRunStatus.CANCELED


@pytest.mark.slow
@pytest.mark.parametrize("status", [dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING])
def test_a_training_that_is_about_to_start_is_canceled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: dg.DagsterRunStatus
) -> None:
    home = Home(tmp_path / "home")
    home.make()
    monkeypatch.setenv("RATCHET_HOME", str(home.path))
    monkeypatch.setenv("DAGSTER_HOME", str(home.dagster))
    folder = prepare(home, Settings.read().profile.orchestration)
    with dg.DagsterInstance.from_config(str(folder)) as instance:
        job = dg.job(name="any")(lambda: None)
        for tags in ({**TRAINING_TAGS, PARTITION: "chain-0007"}, {"ratchet/kind": "data"}):
            instance.create_run_for_job(job, tags=tags, status=status)
        assert "chain-0007 is stopped before its first stage" in output_of(stop, None)
        assert sorted(run.status.value for run in instance.get_runs()) == sorted(
            ["CANCELED", status.value]
        )


@pytest.mark.slow
def test_a_stopped_reviewer_training_names_the_command_that_resumes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "home")
    home.make()
    monkeypatch.setenv("RATCHET_HOME", str(home.path))
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER.replace("study-a", "reviewer-better"), str(home.path)]
    ):
        while lease.holder(home.lease) is None:
            time.sleep(0.05)
        assert "`ratchet reviewer reinforce`" in output_of(stop, None)


def test_a_profile_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.yaml").write_text("seed: 7\n")
    monkeypatch.chdir(tmp_path)
    assert Settings.read("mine.yaml").reference == str(tmp_path / "mine.yaml")
    assert Settings.read("small").reference == "small"
