"""A search trial for Ray Tune: runs a training as a child process and reports its validations.

In: Tune's config, whose `study` names the search's folder. Out: after each validation, the step and
the best validation so far, without the start policy's. Reports are read from the training's own
files, so a trial that has already finished reports them again without training. Importable by name,
so that Tune's workers find it like any other module.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from ray import tune

from artifacts.atomic import write_atomic
from verl_jobs import faults
from verl_jobs.job import TrainingJob
from verl_jobs.search.search import (
    BASE,
    COMMAND,
    last_log_line,
    stop_marker,
    trial_job,
    validations,
)
from verl_jobs.trainer.remote_checkpoints import Mirror

POLL_S = 0.5
END_S = 90.0  # a training saves before it ends, and gets 60 s for that (resources/ray/job.py)
# variables that Tune's Ray sets in this process for itself
OF_TUNE = (
    "RAY_",
    "RATCHET_RAY_",
    "OMP_NUM_THREADS",
    "PYTHONBREAKPOINT",
)


class TrialFailed(RuntimeError):
    """The training of a trial failed; the message is its last log line."""


class Trial(tune.Trainable):  # type: ignore[misc]  # ray has no types
    def setup(self, config: dict[str, Any]) -> None:
        self.study = Path(config["study"])
        point = {key: value for key, value in config.items() if key != "study"}
        self.job = trial_job(TrainingJob.read(self.study / BASE), point)
        self.returned, self.process = 0, None
        if not self._ended():
            self.process = self._start()

    def step(self) -> dict[str, Any]:
        """Wait for the next validation and return it. Raises TrialFailed."""
        while True:
            running, ended = self.process is not None and self.process.poll() is None, self._ended()
            scores = validations(self.study, self.job)
            if self.returned < len(scores) and (
                scores[self.returned][0] < self.job.training.steps or ended or not running
            ):
                self.returned += 1
                return self._result(scores, ended)
            if ended and scores:
                return self._result(scores, ended)
            if not running:
                raise TrialFailed(last_log_line(self.job))
            time.sleep(POLL_S)

    def _result(self, scores: list[tuple[int, float]], ended: bool) -> dict[str, Any]:
        step, best = (
            scores[self.returned - 1][0],
            max(share for _, share in scores[: self.returned]),
        )
        return {"step": step, "validation": best, "done": ended and self.returned == len(scores)}

    def save_checkpoint(self, checkpoint_dir: str) -> dict[str, Any]:
        return {}  # the training saves its own state

    def load_checkpoint(self, checkpoint: dict[str, Any] | None) -> None: ...

    def cleanup(self) -> None:
        """End the training, which saves first; of a finished one, keep only the metrics."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(END_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
        if self._ended():
            for part in ("saves", "candidates"):
                shutil.rmtree(self.job.path / part, ignore_errors=True)
            self._clear_mirror()

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        self.cleanup()
        self.setup(new_config)
        return True

    def _clear_mirror(self) -> None:
        if not self.job.mirror:
            return
        try:
            Mirror(self.job.mirror).clear()
        # any error of the store's client: it leaves files there, but must not end the search
        except Exception as error:
            faults.record(
                self.job.path,
                (
                    f"the copies in {self.job.mirror} could not be removed: "
                    f"{type(error).__name__}: {error}"
                ),
            )

    def _ended(self) -> bool:
        return self.job.done is not None or stop_marker(self.study, self.job).exists()

    def _start(self) -> subprocess.Popen[bytes]:
        job_file = self.job.path / "asked.json"
        self.job.path.mkdir(parents=True, exist_ok=True)
        write_atomic(job_file, self.job.model_dump_json(indent=1))
        command = [
            *json.loads((self.study / COMMAND).read_text(encoding="utf-8")),
            str(job_file),
            str(os.getpid()),
        ]
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(OF_TUNE) or name.startswith("RAY_AUTH")
        }
        with (self.job.path / "trial.log").open("ab") as log:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
            )
