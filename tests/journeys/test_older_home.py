"""The current version reads a home of an older version.

tests/homes/first.tar.xz: one decided pipeline run of the profile `small`, without weights.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from evaluation.scorecard import Scorecard
from problems.schema import read_parquet
from resources.home import Home
from resources.registry.ledger import Ledger
from resources.run_record import records
from verl_jobs.job import TrainingJob, metrics

ARCHIVE = Path(__file__).parent.parent / "homes" / "first.tar.xz"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    folder = tmp_path_factory.mktemp("home")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return Home(folder)


def test_the_run_record_and_its_training_are_read(home: Home) -> None:
    [record] = records(home.runs)
    assert (record.id, record.state, record.decision) == ("chain-0001", "done", "refuse")
    [job] = (home.runs / record.id / "training").glob("*/job.json")
    assert TrainingJob.read(job).training.algorithm == "grpo"
    assert metrics(job.parent)[-1]["step"] == 8


def test_the_ledger_is_read(home: Home) -> None:
    ledger = Ledger(home.ledger)
    history = ledger.history()
    assert [entry.kind for entry in history[:2]] == ["install", "refuse"]
    champion = ledger.champion()
    assert champion is not None
    assert champion.entry == history[0].entry


@pytest.mark.parametrize("name", ["chain-0001--heldout", "chain-0001--validation"])
def test_scorecards_have_their_recorded_hash(home: Home, name: str) -> None:
    artifact = home.store().require("scores", name)
    assert Scorecard.stored(artifact).content_hash == artifact.content_hash


def test_the_clean_dataset_has_its_recorded_hash(home: Home) -> None:
    store = home.store()
    artifact = store.require("datasets", "clean_problems")
    store.verify(artifact)
    assert read_parquet(artifact.path / "problems.parquet")


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["status"],
        ["registry"],
        ["explain", "1"],
        ["why-not", "2"],
        ["jobs", "show", "chain-0001"],
        ["failures", "chain-0001--heldout"],
        ["data", "show"],
    ],
    ids=lambda command: command[0],
)
def test_the_command_line_shows_it(home: Home, command: list[str]) -> None:
    process = subprocess.run(
        [sys.executable, "-m", "cli.main", *command, "--profile", "small"]
        if command[0] not in ("status", "jobs")
        else [sys.executable, "-m", "cli.main", *command],
        capture_output=True,
        text=True,
        env={"RATCHET_HOME": str(home.path), "PATH": "/usr/bin:/bin"},
        cwd=ARCHIVE.parents[2],
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout, process.stderr
