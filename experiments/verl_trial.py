"""A small real training with any verl, on a CPU: how far it gets.

In: a package of verl, which comes before the installed one. Out: a `Trial`. The model is tiny and
untrained; completions are sampled, run in the sandbox, scored, trained on and saved.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from resources.ray.end import last_error
from resources.ray.job import LOG, train
from resources.ray.private import Private, TrainingFailed
from verl_jobs.config.training import Training
from verl_jobs.job import TrainingJob, candidates, metrics
from verl_jobs.plugins.tiny_training import TinyTraining

TRAINING = Training(steps=2, problems_per_step=2, group_size=2, save_every=1)
LIMIT_S = 3600.0  # a busy machine takes many minutes


@dataclass(frozen=True)
class Trial:
    """How far the training got. error: why it ended; empty if all steps were trained."""

    steps: int
    saves: int
    error: str = ""


def try_training(verl: Path, version: str, folder: Path) -> Trial:
    """Train TRAINING.steps steps with this package of verl.

    version: under which it is installed; its adapter follows from it. folder: an empty one.
    """
    path = folder / "path"
    shutil.copytree(verl, path / "verl")
    about = path / "verl-0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Name: verl\nVersion: {version}\n")
    error = ""
    try:
        ended = subprocess.run(
            [sys.executable, "-m", __name__, str(folder)],
            env=os.environ | {"PYTHONPATH": f"{path}:{os.environ.get('PYTHONPATH', '')}"},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        if ended.returncode:
            error = (ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"])[-1]
    except subprocess.TimeoutExpired:
        error = f"not finished after {LIMIT_S:.0f} s: {last_error(folder / LOG)}"
    finally:
        if (file := folder / "job.json").exists():
            Private(folder / "ray", TrainingJob.read(file)).end()
    steps = {row["step"] for row in metrics(folder)} - {0}
    return Trial(len(steps), len(candidates(folder)), error)


def main(folder: Path) -> None:
    """Train in this process's environment."""
    job = TinyTraining(TRAINING, folder).job
    try:
        train(job, Private(folder / "ray", job), attempts=1)
    except TrainingFailed as error:
        sys.exit(" ".join(str(error).split()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
