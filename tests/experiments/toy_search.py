"""A search with real Optuna, but without a model: `toy_search.py FOLDER TRIALS`.

`... --train FOLDER JOB PARENT` is one training. It writes the metrics of each step, with a better
validation the closer its learning rate is to 3e-4, and resumes. It appends a line to `steps.log`
for each step.
"""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from rich.console import Console

from experiments.search import Budget, open_search, run_search
from experiments.study import Study
from experiments.trials import Trials, show
from pipelines.process import die_with_parent
from resources.config.profile import Profile
from resources.config.tuning import Span, Tuning
from resources.home import Home
from resources.progress import Progress
from resources.settings import Settings
from rewards.composite import RewardConfig
from verl_jobs.config.training import Training
from verl_jobs.job import VALIDATION, TrainingJob, metrics

PROFILE = Profile(
    training=Training(steps=6, save_every=2),
    tuning=Tuning(space={"training.learning_rate": Span(log_uniform=(5e-5, 6e-4))}, reduction=2),
)


def main(folder: Path, trials: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    base = TrainingJob(
        folder=str(folder / "training" / "x"),
        run_id="toy",
        start="s",
        train="t",
        validation="v",
        inputs={},
        training=PROFILE.training,
        reward=RewardConfig(),
        reward_hash="f",
        isolation="auto",
        seed=1,
    )
    stage = SimpleNamespace(
        report=SimpleNamespace(progress=Progress(folder / "progress.jsonl", "checkpoint")),
        pipeline_run=SimpleNamespace(folder=folder),
    )
    rows = SimpleNamespace(manifest=SimpleNamespace(facts={"validation": 100}))
    settings = Settings(Home(folder), "small")
    study = cast(
        Study, SimpleNamespace(id="toy", profile=PROFILE, settings=settings, stage=stage, rows=rows)
    )
    history = Trials(open_search(folder / "tuning", PROFILE, trials), base)
    console = Console(file=sys.stdout, width=150)
    console.print(f"{len(history.ended())} of {trials} trials done")
    trainer = [sys.executable, __file__, "--train", str(folder)]
    run_search(study, history, trainer, Budget(trials, 0), 1, console)
    show(history, folder / "tuning.md", study, console)


def train(folder: Path, job: TrainingJob) -> None:
    quality = 0.9 - 0.2 * abs(math.log(job.training.learning_rate / 3e-4))
    done = max((row["step"] for row in metrics(job.path)), default=0)
    for step in range(done + 1, job.training.steps + 1):
        time.sleep(0.2)
        row: dict[str, Any] = {"timing_s/step": 0.2}
        if step % job.training.save_every == 0:
            row[VALIDATION] = round(quality * step / job.training.steps, 2)
        with (job.path / "metrics-001.jsonl").open("a") as file:
            file.write(json.dumps({"step": step, "data": row}) + "\n")
        with (folder / "steps.log").open("a") as file:
            file.write(f"{job.key[:12]} {step}\n")
    (job.path / "done.json").write_text("{}")


def steps_done(folder: Path) -> list[str]:
    log = folder / "steps.log"
    return log.read_text().splitlines() if log.exists() else []


def ended(folder: Path) -> list[int]:
    """Return the trials that finished or were stopped early."""
    search = open_search(folder / "tuning", PROFILE, 0)
    return [trial.number for trial in search.trials if trial.state.is_finished()]


if __name__ == "__main__":
    if sys.argv[1] == "--train":
        die_with_parent(int(sys.argv[4]))
        train(Path(sys.argv[2]), TrainingJob.read(Path(sys.argv[3])))
    else:
        main(Path(sys.argv[1]), int(sys.argv[2]))
