"""The training process: one per folder, its exit codes and its stop reason."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.verl_jobs.test_job import a_job
from verl_jobs.config.environment import environment
from verl_jobs.config.training import Training
from verl_jobs.trainer import entry, trainer_lease
from verl_jobs.trainer.entry import main


def test_a_second_training_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    path = job.write()
    with (tmp_path / "trainer.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(SystemExit, match=tmp_path.name):
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
    print("caught")
"""


def test_exceptions_of_verl_pass_through_hydra(tmp_path: Path) -> None:
    variables = os.environ | environment(Training())
    done = subprocess.run(
        [sys.executable, "-c", APP],
        capture_output=True,
        text=True,
        env=variables,
        cwd=tmp_path,
        check=False,
    )
    assert done.stdout.strip() == "caught", done.stderr


NOTICE = """
import sys, time
from pathlib import Path
from verl_jobs.trainer.entry import Reporter
from verl_jobs.trainer.progress import ProgressWatch
from verl_jobs.job import TrainingJob
job = TrainingJob.read(Path(sys.argv[1]))
reporter = Reporter(job, None, False, ProgressWatch(job.path, 60.0))
reporter.notice_at = time.monotonic() - float(sys.argv[2])
reporter.on_sigterm()
print("continues")
"""


@pytest.mark.slow
@pytest.mark.parametrize(("ago", "code", "output"), [(5.0, 0, "continues"), (50.0, 75, "")])
def test_sigterm_ends_a_training_only_after_its_time_to_save(
    tmp_path: Path, ago: float, code: int, output: str
) -> None:
    """An owner that cancels sends a notice first and stops the Ray job a minute later."""
    command = [sys.executable, "-c", NOTICE, str(a_job(tmp_path).write()), str(ago)]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False
    )
    assert (done.returncode, done.stdout.strip()) == (code, output), done.stderr
    assert bool(trainer_lease.notice(tmp_path)) == bool(output)


def test_the_stop_reason_of_a_killed_attempt_is_not_reported_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = a_job(tmp_path)
    (tmp_path / "stopped.json").write_text(
        '{"step": 4, "reason": "no progress"}'
    )  # killed before done.json
    monkeypatch.setattr(entry, "_train", lambda *_: None)
    main(job.write())
    assert (job.done or {}) | {"files": {}} == {
        "steps": job.training.steps, "candidates": [], "stopped": "", "files": {}
    }  # fmt: skip
