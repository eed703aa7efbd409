"""A complete pipeline run under bad conditions, from raw problems to a promotion decision.

Training is real verl on Ray, inside Dagster runs. The command first runs without network and HOME,
in a home folder with spaces in its path, until it is killed during training. It then runs again
while an unrelated Ray is running.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from resources.ray.head import python
from tests.journeys.demo_run import (
    Run,
    command_line,
    demo,
    of_home,
    orphans,
    results_of,
    stray,
    wait_until,
)
from tests.journeys.ui_images import PAGES, take_images

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2400)]
DATA = (
    "raw_problems",
    "verified_problems",
    "augmented_problems",
    "synthetic_problems",
    "clean_problems",
)
STEPS, SAVE_EVERY = 8, 2  # of the small profile


@dataclass
class ResumedRun:
    """A pipeline run that was killed and then resumed to its end.

    orphans: processes that were still running some time after the kill.
    """

    home: Path
    first: Run
    second: Run
    orphans: list[str]


@pytest.fixture(scope="module")
def another_ray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Start an unrelated Ray on Ray's default port and with its default address file."""
    # The paths of Ray's sockets must be short.
    session = tempfile.mkdtemp(prefix="other-ray-", dir="/tmp")
    command = [
        python(Path(session)),
        "-m",
        "ray.scripts.scripts",
        "start",
        "--head",
        "--block",
        "--node-ip-address=127.0.0.1",
        "--num-cpus=1",
    ]
    with socket.socket() as probe:  # use any other port if a Ray already occupies this one
        command += [] if probe.connect_ex(("127.0.0.1", 6379)) else ["--port=0"]
    command += [
        "--include-dashboard=false",
        f"--temp-dir={session}",
        "--disable-usage-stats",
        f"--object-store-memory={80 * 2**20}",
    ]
    log_file = tmp_path_factory.mktemp("another ray") / "log"
    with log_file.open("w") as log:
        ray = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        assert wait_until(lambda: "Ray runtime started" in log_file.read_text(), 120), (
            log_file.read_text()
        )
        yield
        assert ray.poll() is None, "the other Ray did not survive the pipeline run"
    finally:
        ray.terminate()
        ray.wait(30)
        shutil.rmtree(session, ignore_errors=True)


@pytest.fixture(scope="module")
def resumed(tmp_path_factory: pytest.TempPathFactory, another_ray: None) -> ResumedRun:
    home = tmp_path_factory.mktemp("a home with spaces")

    def kill(command: subprocess.Popen[bytes]) -> str:
        wait_until(
            lambda: max(steps(home, 1), default=0) > SAVE_EVERY or command.poll() is not None, 1200
        )
        trainers = [
            process
            for process in of_home(home)
            if "verl_jobs.trainer.entry" in command_line(process)
        ]
        for process in (command, *trainers):
            process.send_signal(signal.SIGKILL)
        return f"command line, trainers: {len(trainers)}"

    first = demo(home, kill=kill, bare_machine=True)
    remaining = orphans(home)
    return ResumedRun(home, first, demo(home), remaining)


def steps(home: Path, attempt: int) -> list[int]:
    """Return the training steps that an attempt has reported."""
    files = home.glob(f"runs/*/training/*/metrics-{attempt:03d}.jsonl")
    lines = [
        json.loads(line)
        for path in files
        for line in path.read_text().splitlines()
        if line.endswith("}")
    ]
    return [line["step"] for line in lines if "critic/score/mean" in line["data"]]


def test_the_kill_hits_the_training_and_no_process_survives(resumed: ResumedRun) -> None:
    assert (resumed.first.code, resumed.first.at_stage) == (-signal.SIGKILL, "checkpoint"), (
        resumed.first.output[-3000:]
    )
    assert resumed.first.killed == "command line, trainers: 1"
    assert resumed.orphans == []


def test_the_pipeline_run_reaches_and_reports_a_decision(resumed: ResumedRun) -> None:
    assert resumed.second.code == 0, resumed.second.output[-3000:]
    [report] = resumed.home.glob("reports/*/summary.json")
    assert (report.parent / "index.html").stat().st_size > 10_000
    summary = json.loads(report.read_text())
    assert summary["decision"]["kind"] in ("promote", "refuse")
    assert "PROMOTED" in resumed.second.output
    assert str(report.parent / "index.html") in resumed.second.output


def test_the_training_resumes_from_the_last_checkpoint(resumed: ResumedRun) -> None:
    first, second = steps(resumed.home, 1), steps(resumed.home, 2)
    assert second == list(range(second[0], STEPS + 1))
    assert (second[0] - 1) % SAVE_EVERY == 0
    assert first[-1] - SAVE_EVERY <= second[0] - 1 <= first[-1] + 1, (
        "steps before the last checkpoint were repeated"
    )


def test_the_ledger_holds_the_first_version_and_one_decision(resumed: ResumedRun) -> None:
    kinds = [kind for kind, *_ in results_of(resumed.home).ledger]
    assert kinds[0] == "install"
    assert len(kinds) == 2


def test_dagsters_pages_show_the_run(resumed: ResumedRun, tmp_path: Path) -> None:
    folder = Path(os.environ.get("IMAGES") or tmp_path)
    take_images(resumed.home, folder)
    assert {path.stem for path in folder.glob("*.png")} >= set(PAGES)


def test_no_process_and_no_half_written_file_remains(resumed: ResumedRun) -> None:
    assert orphans(resumed.home) == []
    assert stray(resumed.home) == []


def test_dagster_makes_the_same_datasets_in_another_home(
    resumed: ResumedRun, tmp_path: Path
) -> None:
    job = [
        sys.executable,
        "-m",
        "dagster",
        "job",
        "execute",
        "-m",
        "pipelines.definitions",
        "-j",
        "refresh_data",
    ]
    (tmp_path / "dagster").mkdir()
    settings = {
        "RATCHET_HOME": str(tmp_path / "home"),
        "RATCHET_PROFILE": "small",
        "DAGSTER_HOME": str(tmp_path / "dagster"),
    }
    run = subprocess.run(
        job, env=os.environ | settings, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr[-3000:]
    undisturbed, killed = results_of(tmp_path / "home").datasets, results_of(resumed.home).datasets
    assert undisturbed == {name: killed[name] for name in DATA}
