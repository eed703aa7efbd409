"""The training process: one at a time in a folder."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.verl_jobs.test_job import a_job
from verl_jobs.config.overrides import environment
from verl_jobs.config.training import Training
from verl_jobs.trainer import entry
from verl_jobs.trainer import trainer_lease as owner
from verl_jobs.trainer.entry import main


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
    done = subprocess.run(
        [sys.executable, "-c", APP],
        capture_output=True,
        text=True,
        env=told,
        cwd=tmp_path,
        check=False,
    )
    assert done.stdout.strip() == "came through", done.stderr


ASKED = """
import sys, time
from pathlib import Path
from verl_jobs.trainer.entry import Reporter
from verl_jobs.job import TrainingJob
reporter = Reporter(TrainingJob.read(Path(sys.argv[1])), None, owned=False)
reporter.asked_at = time.monotonic() - float(sys.argv[2])
reporter.asked_to_end()
print("goes on to save")
"""


@pytest.mark.parametrize(("ago", "code", "said"), [(5.0, 0, "goes on to save"), (50.0, 75, "")])
def test_sigterm_ends_what_has_had_its_time_to_save_and_asks_what_has_not(
    tmp_path: Path, ago: float, code: int, said: str
) -> None:
    """An owner that cancels asks first, and has Ray stop the job a minute later."""
    command = [sys.executable, "-c", ASKED, str(a_job(tmp_path).write()), str(ago)]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False
    )
    assert (done.returncode, done.stdout.strip()) == (code, said), done.stderr
    assert bool(owner.notice(tmp_path)) == bool(said)


def test_what_stopped_a_life_that_was_killed_is_not_said_of_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = a_job(tmp_path)
    (tmp_path / "stopped.json").write_text(
        '{"step": 4, "reason": "no progress"}'
    )  # and a kill before done.json
    monkeypatch.setattr(entry, "_train", lambda *_: None)
    main(job.write())
    assert job.done == {"steps": job.training.steps, "candidates": [], "stopped": ""}
