"""The training process: one at a time in a folder."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.verl_jobs.test_job import a_job
from verl_jobs.config import Training
from verl_jobs.entry import main
from verl_jobs.overrides import environment


def test_a_second_training_in_the_same_folder_does_not_begin(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    path = job.write()
    with (tmp_path / "trainer.lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(SystemExit, match="another process trains in"):
            main(path)
    assert not (tmp_path / "done.json").exists()


APP = """
import hydra, sys
sys.argv = ["main_ppo"]
@hydra.main(version_base=None, config_path=None)
def app(config):
    raise KeyError("a Ray process died")
try:
    app()
except KeyError:
    print("came through")
"""


def test_what_verl_raises_comes_through_hydra_to_the_entry(tmp_path: Path) -> None:
    told = os.environ | environment(Training(), tmp_path)
    done = subprocess.run([sys.executable, "-c", APP], capture_output=True, text=True, env=told, cwd=tmp_path, check=False)
    assert done.stdout.strip() == "came through", done.stderr
