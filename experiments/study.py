"""A study: several trainings from one start, none of them promoted.

Seeds, ablation and tuning define the trainings and compare their results; `run_study` prepares the
start, holds the lease and records whether the study is complete. A study's id is derived from the
profile and the champion, so a repeated command finds the record of its finished cells (loop.py).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from artifacts.hashing import hash_data
from assets.stages import RUN
from pipelines.launch import INTERRUPTED, explain_failure, prepare_run, run_with_view, start_worker
from pipelines.run_worker import BUSY
from pipelines.watch.view import View
from resources import lease
from resources.config.profile import Profile
from resources.home import Home
from resources.run_record import PipelineRun, open_run
from resources.settings import Settings
from verl_jobs.job import TrainingJob, metrics
from verl_jobs.metrics.figures import seconds_trained, series
from verl_jobs.planner.preflight import check_settings

if TYPE_CHECKING:
    from optuna.pruners import BasePruner

    from artifacts.store import Artifact
    from experiments.loop import StudyRecord
    from resources.run_context import RunContext, StageContext

# All trainings of a study share the stages before `checkpoint`.
SHARED_STAGES = RUN[: RUN.index("checkpoint")]


class NotPrepared(RuntimeError):
    """The stages before the trainings did not finish; `code` is the command's exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(f"the stages before the trainings ended with exit code {code}")
        self.code = code


@dataclass(frozen=True)
class StudyResult:
    """How many trainings failed, and how many the same command would still train."""

    failed: int
    remaining: int


@dataclass(frozen=True)
class Study:
    """A prepared study. This process holds its lease."""

    settings: Settings
    stage: StageContext
    rows: Artifact
    # The command that trains, without the job's file and this process's id.
    trainer: Sequence[str] = (sys.executable, "-m", "experiments.training_process")

    @property
    def home(self) -> Home:
        return self.settings.home

    @property
    def profile(self) -> Profile:
        return self.settings.profile

    @property
    def id(self) -> str:
        return self.stage.pipeline_run.record.id

    @property
    def reports(self) -> Path:
        return self.home.reports / self.id

    def with_changes(self, changes: Sequence[str]) -> Study:
        """Return this study under a changed profile, with the training rows that belong to it.

        changes: `section.key=value` each. Raises ProfileError and CannotTrain.
        """
        from assets.training_rows import training_rows

        settings = self.settings.with_changes(changes)
        check_settings(settings.profile.training)
        stage = replace(self.stage, run_context=context_of(settings))
        return replace(self, settings=settings, stage=stage, rows=training_rows(stage))

    def record(self, name: str, console: Console, pruner: BasePruner | None = None) -> StudyRecord:
        """Return the record of this study's cells of one kind. The import of Optuna is slow."""
        from experiments.loop import StudyRecord

        return StudyRecord(self.stage.pipeline_run.folder, name, console, pruner)

    def job(self, seed: int, training: Mapping[str, Any] | None = None) -> TrainingJob:
        """Return the job of one training.

        training: values that replace those of the profile's `training` section.
        """
        from assets.training_job import training_job

        job = training_job(self.stage, self.rows)
        section = job.training.model_dump() | dict(training or {})
        training_config = type(job.training).model_validate(section)
        name = f"{self.id}-s{seed}"
        job = job.model_copy(update={"seed": seed, "training": training_config, "run_id": name})
        return job.model_copy(
            update={"folder": str(self.stage.pipeline_run.folder / "training" / job.key[:12])}
        )


@dataclass(frozen=True)
class Outcome:
    """How one training ended, according to its metrics. Shares are in [0, 1].

    start, best: share of validation problems solved before training and at `best_step`.
    curve, rewards: (step, share solved) and (step, mean reward).
    """

    seed: int
    start: float
    best: float
    best_step: int
    steps: int
    minutes: float
    stopped: str
    curve: tuple[tuple[int, float], ...]
    rewards: tuple[tuple[int, float], ...]


def outcome(job: TrainingJob) -> Outcome:
    """Read the outcome of a training from its folder. Raises LookupError without a validation."""
    history = metrics(job.path)
    # `validations` leaves out steps at which the training was only interrupted, so an interrupted
    # training has the same curve as an uninterrupted one.
    curve = tuple(sorted(job.validations().items()))
    if not curve:
        raise LookupError(f"{job.path} holds no validation")
    step, best = max(curve, key=lambda point: (point[1], -point[0]))
    rewards = tuple(series(history, "reward"))
    return Outcome(
        seed=job.seed,
        start=curve[0][1],
        best=best,
        best_step=step,
        steps=int(history[-1]["step"]),
        minutes=seconds_trained(history) / 60,
        stopped=job.stopped,
        curve=curve,
        rewards=rewards,
    )


def study_id(profile: Profile, champion: str) -> str:
    """Return the study's id. Settings that a study varies (training, tuning) are not part of it."""
    shared = profile.model_dump(mode="json", exclude={"training", "tuning"})
    return f"study-{hash_data({'profile': shared, 'champion': champion})[:10]}"


def run_study(
    settings: Settings, why: str, console: Console, measure: Callable[[Study], StudyResult]
) -> int:
    """Prepare the study, call `measure`, and record whether the study is complete.

    why: the command to repeat, without profile and `--set`; it resumes. Returns exit code 0, 1 if
    a training failed, 3 if another process trains here, 130 if interrupted.
    """
    try:
        with prepared_study(settings, why, console) as study:
            result = measure(study)
            state = "open" if result.remaining else "done"
            study.stage.pipeline_run.change(state=state)
    except NotPrepared as error:
        return error.code
    except KeyboardInterrupt:
        console.print("Stopped. Finished work is kept; the same command resumes it.")
        return INTERRUPTED
    return 1 if result.failed else 0


@contextmanager
def prepared_study(settings: Settings, why: str, console: Console) -> Iterator[Study]:
    """Take the lease and run the shared stages in a separate process, unless they are done.

    Raises NotPrepared.
    """
    profile, home = prepare_run(settings), settings.home
    champion = settings.ledger.champion()
    id = study_id(profile, champion.checkpoint_hash if champion else "")
    folder = home.runs / id
    folder.mkdir(parents=True, exist_ok=True)
    try:
        lease.take(home.lease, id)
    except lease.LeaseHeld as error:
        print(f"error: {error}", file=sys.stderr)
        raise NotPrepared(BUSY) from error
    try:
        view = View(folder, f"{id} · profile {settings.title} · {why}", SHARED_STAGES)
        code = run_with_view(
            lambda: start_worker(settings, "prepare", id, why),
            view,
            PipelineRun(home.runs, id),
            console,
        )
        if code:
            explain_failure(folder, code)
            raise NotPrepared(code)
        yield _open_study(settings, id, why)
    finally:
        lease.release(home.lease)


def context_of(settings: Settings) -> RunContext:
    """Return the Dagster resource of these settings, for use without Dagster."""
    from resources.run_context import RunContext

    return RunContext.of(replace(settings, profile_name=settings.reference))


def _open_study(settings: Settings, id: str, why: str) -> Study:
    from assets.training_rows import training_rows
    from resources.progress import Progress
    from resources.run_context import StageContext
    from resources.stage_report import StageReport

    pipeline_run = open_run(
        settings.home.runs,
        id,
        kind="study",
        base_seed=settings.profile.seed,
        profile=settings.reference,
        why=why,
        champion=None,
        changes=settings.changes,
    )
    # An existing record names the command that began the study; this one resumes it from now on.
    pipeline_run.change(why=why, profile=settings.reference, changes=settings.changes)
    report = StageReport(Progress(pipeline_run.progress_file, "checkpoint"))
    stage = StageContext(context_of(settings), pipeline_run, report)
    stage.report.progress.write("begin")  # for `ratchet jobs watch`
    return Study(settings, stage, training_rows(stage))


def write_report(folder: Path, name: str, facts: Mapping[str, Any], text: str) -> Path:
    """Write `<name>.json` and `<name>.md` into the folder and return the path of the latter."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")
    (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return folder / f"{name}.md"
