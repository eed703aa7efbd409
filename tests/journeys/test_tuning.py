"""A search over real trainings that is killed during one of them resumes and finishes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from resources.home import Home
from tests.journeys.demo_run import orphans, ratchet, wait_until
from verl_jobs.job import metrics

pytestmark = [pytest.mark.soak]

TUNE = [
    "tune",
    "--profile",
    "small",
    "--trials",
    "2",
    "--set",
    "training.steps=2",
    "--set",
    "training.save_every=1",
]


def test_a_search_that_was_killed_during_a_training_resumes(tmp_path: Path) -> None:
    path = tmp_path / "a home with spaces"
    path.mkdir()
    environment = os.environ | {"RATCHET_HOME": str(path)}
    with (path / "first.log").open("wb") as log:
        first = subprocess.Popen(
            ratchet(*TUNE),
            env=environment,
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert wait_until(
            lambda: (
                first.poll() is not None or "trial 1: step 1" in (path / "first.log").read_text()
            ),
            3600,
        )
        assert first.poll() is None, (path / "first.log").read_text()
        first.kill()
        first.wait()
    output = subprocess.run(
        ratchet(*TUNE), env=environment, check=True, capture_output=True, text=True
    ).stdout
    assert "Best: trial" in output
    assert "2 of 2 trials" not in output
    assert "--set training.learning_rate=" in output
    folders = [job.parent for job in Home(path).runs.folder.glob("study-*/training/*/job.json")]
    assert len(folders) == 2
    assert all({1} <= {row["step"] for row in metrics(folder)} for folder in folders)
    again = subprocess.run(
        ratchet(*TUNE), env=environment, check=True, capture_output=True, text=True
    ).stdout
    assert "trial 1: step" not in again, "a finished trial was repeated"
    assert "Best: trial" in again, "a finished trial was repeated"
    assert not orphans(path)
