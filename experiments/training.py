"""A training as a cell of a study: a process of its own, whose validations are printed."""

from __future__ import annotations

import os
import signal
import subprocess

from rich.console import Console

from artifacts.atomic import write_atomic
from artifacts.integrity import seal
from experiments.loop import CellFailed, RunningCell
from experiments.study import Study
from verl_jobs.job import VALIDATION, TrainingJob, metrics
from verl_jobs.log import last_line

END_S = 90.0  # a training saves before it ends, and gets 60 s for that (resources/ray/job.py)


def training(job: TrainingJob, study: Study, title: str, console: Console) -> RunningCell:
    """Train one job to its end, unless it has ended. Closing the cell ends it with a save."""
    if job.done is not None:
        return None
    process, printed = _start(job, study), -1
    try:
        running = True
        while running:
            running = process.poll() is None
            printed = _show(job, study, title, printed, console)
            if running:
                yield
    finally:
        _stop(process)
    if job.done is None:
        log = job.path / "cell.log"
        why = last_line(log).removeprefix("error: ")
        raise CellFailed(why or f"it ended without a message: {log}")
    return None


def _show(job: TrainingJob, study: Study, title: str, printed: int, console: Console) -> int:
    """Print the validations after step `printed`, and return the step of the last one."""
    history, steps = metrics(job.path), job.training.steps
    if history:
        text = f"{title}, reward {history[-1].get('critic/score/mean', 0.0):.2f}"
        study.stage.report.progress.at(history[-1]["step"], steps, text)
    for row in history:
        if VALIDATION in row and row["step"] > printed:
            printed = row["step"]
            text = f"  {title}: step {printed} of {steps}, validation {100 * row[VALIDATION]:.1f} %"
            console.print(text, highlight=False, soft_wrap=True)
    return printed


def _start(job: TrainingJob, study: Study) -> subprocess.Popen[bytes]:
    file = job.path / "cell.json"
    job.path.mkdir(parents=True, exist_ok=True)
    write_atomic(file, seal(job.model_dump_json(indent=1)))
    with (job.path / "cell.log").open("ab") as log:
        return subprocess.Popen(
            [*study.trainer, str(file), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=os.environ | study.settings.environment(),
        )


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a training, which saves first."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()


def trainings_at_once(study: Study) -> int:
    """Return how many trainings of the study run at the same time."""
    ray_settings = study.profile.ray
    if study.profile.tuning.at_once or not ray_settings.address:
        return study.profile.tuning.at_once or 1
    from ray.util.state import list_nodes

    gpus = sum(
        node.resources_total.get("GPU", 0)
        for node in list_nodes(address=ray_settings.address, filters=[("state", "=", "ALIVE")])
    )
    return max(1, int(gpus) // study.profile.training.ranks)
