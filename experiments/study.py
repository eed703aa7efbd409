"""A study: several trainings from one start, none of them promoted. Seeds, ablation and tuning say
what varies and how results are compared; `conduct` starts, resumes and ends them.

A study's name follows from the profile and the champion, a training's folder from its job: when the
command is repeated, trainings that ended are not repeated.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from artifacts.hashing import hash_data
from pipelines.launch import INTERRUPTED, explain_failure, prepare_run, run_with_view, start_worker
from pipelines.process import MARK
from pipelines.run_worker import BUSY
from pipelines.watch.view import STAGES, View
from resources import lease
from resources.config.profile import Profile
from resources.home import Home
from resources.ray.job import train
from resources.ray.place import ray_of
from resources.ray.private import Joined, Private, TrainingFailed
from resources.run_record import PipelineRun, open_run
from resources.settings import Settings
from verl_jobs.job import VALIDATION, TrainingJob, metrics
from verl_jobs.metrics.figures import seconds_trained, series
from verl_jobs.planner.preflight import check_settings

if TYPE_CHECKING:
    from artifacts.store import Artifact
    from resources.run_context import RunContext, StageContext

BEFORE = tuple(STAGES)[
    : tuple(STAGES).index("checkpoint")
]  # stages that all trainings of a study share


class NotPrepared(RuntimeError):
    """The stages before the trainings have not been done; `code` is what the command ends with."""

    def __init__(self, code: int) -> None:
        super().__init__(f"ended with {code}")
        self.code = code


@dataclass(frozen=True)
class Ended:
    """The number of trainings that failed, and of those that the same command would train."""

    failed: int
    left: int


@dataclass(frozen=True)
class Study:
    """A prepared study, whose lease this process holds."""

    settings: Settings
    stage: StageContext
    rows: Artifact

    @property
    def home(self) -> Home:
        return self.settings.home

    @property
    def profile(self) -> Profile:
        return self.settings.profile

    @property
    def id(self) -> str:
        return self.stage.pipeline_run.record.id

    def ray(self, job: TrainingJob) -> Private | Joined:
        """Where this job is trained."""
        return ray_of(self.home, self.profile, job)

    @property
    def reports(self) -> Path:
        return self.home.reports / self.id

    def changed(self, changes: Sequence[str]) -> Study:
        """Return the same start under a changed profile, `section.key=value` each, with its
        training rows. Raises ProfileError and CannotTrain.
        """
        from assets.checkpoint import training_rows

        settings = self.settings.with_changes(changes)
        check_settings(settings.profile.training)
        stage = replace(self.stage, run_context=context_of(settings))
        return Study(settings, stage, training_rows(stage))

    def job(self, seed: int, training: Mapping[str, Any] | None = None) -> TrainingJob:
        """What one training is told. training: changes to the profile's section of that name."""
        from assets.checkpoint import training_job

        job = training_job(self.stage, self.rows)
        section = job.training.model_dump() | dict(training or {})
        changed = type(job.training).model_validate(section)
        name = f"{self.id}-s{seed}"
        job = job.model_copy(update={"seed": seed, "training": changed, "chain": name})
        return job.model_copy(
            update={"folder": str(self.stage.pipeline_run.folder / "training" / job.key[:12])}
        )


@dataclass(frozen=True)
class Outcome:
    """How one training ended, by its own metrics; shares in [0, 1]."""

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
    """Raises LookupError where no validation was measured."""
    history = metrics(job.path)
    curve = tuple(
        sorted(job.validations().items())
    )  # not of a step at which it was only stopped: the same as of one that never was
    if not curve:
        raise LookupError(f"{job.path} holds no validation")
    step, best = max(curve, key=lambda point: (point[1], -point[0]))
    rewards = tuple(series(history, "reward"))
    return Outcome(
        job.seed,
        curve[0][1],
        best,
        step,
        int(history[-1]["step"]),
        seconds_trained(history) / 60,
        job.stopped,
        curve,
        rewards,
    )


def study_id(profile: Profile, champion: str) -> str:
    """What is tried is no part of what it is tried on."""
    settings = profile.model_dump(mode="json", exclude={"training", "tuning"})
    return f"study-{hash_data({'profile': settings, 'champion': champion})[:10]}"


def conduct(
    settings: Settings, why: str, console: Console, measure: Callable[[Study], Ended]
) -> int:
    """Prepare the study, measure what is missing, and record whether it is complete. Exit code 0, 1
    if a training failed, 3 if another process trains here, 130 if interrupted.

    why: the command to repeat, without profile and `--set`; it resumes.
    """
    try:
        with study(settings, why, console) as prepared:
            ended = measure(prepared)
            state = "open" if ended.left else "done"
            prepared.stage.pipeline_run.change(state=state)
    except NotPrepared as error:
        return error.code
    except KeyboardInterrupt:
        console.print("Stopped. What was done is kept: the same command resumes.")
        return INTERRUPTED
    return 1 if ended.failed else 0


def train_job(job: TrainingJob, study: Study, title: str, console: Console) -> str:
    """Train one job to its end, unless it ended before, and print a line per validation. Return the
    error if it failed, else "".
    """
    if job.done is not None:
        console.print(f"{title}: there already", highlight=False)
        return ""
    console.print(f"{title} ...", highlight=False)
    printed = -1

    def look() -> None:
        nonlocal printed
        history = metrics(job.path)
        if history:
            last = history[-1]
            reward = f"{title}, reward {last.get('critic/score/mean', 0.0):.2f}"
            study.stage.report.progress.at(last["step"], job.training.steps, reward)
        for row in history:
            if VALIDATION in row and row["step"] > printed:
                printed = row["step"]
                console.print(
                    f"  {title}: step {printed} of {job.training.steps}, validation "
                    f"{100 * row[VALIDATION]:.1f} %",
                    highlight=False,
                )

    try:
        train(job, study.ray(job), on_poll=look)
    except TrainingFailed as error:
        console.print(f"{title}: {error}", style="red", soft_wrap=True, highlight=False)
        return str(error)
    look()
    return ""


@contextmanager
def study(settings: Settings, why: str, console: Console) -> Iterator[Study]:
    """Run the stages before the trainings, in a process of their own, unless they are done. Raises
    NotPrepared.
    """
    profile, home = prepare_run(settings), settings.home
    champion = settings.ledger.champion()
    id = study_id(profile, champion.checkpoint_hash if champion else "")
    folder = home.runs / id
    folder.mkdir(parents=True, exist_ok=True)
    try:
        lease.take(home.lease, id)
    except lease.LeaseHeld as held:
        console.print(str(held), style="yellow", soft_wrap=True)
        raise NotPrepared(BUSY) from held
    try:
        os.environ[MARK] = str(folder)
        view = View(folder, f"{id} · profile {settings.title} · {why}", BEFORE)
        code = run_with_view(
            lambda: start_worker(settings, "prepare", id, why), view, PipelineRun(folder), console
        )
        if code:
            explain_failure(folder, code, console)
            raise NotPrepared(code)
        yield _opened(settings, id, why)
    finally:
        lease.give_back(home.lease)


def context_of(settings: Settings) -> RunContext:
    """Return the Dagster resource of these settings, for use without Dagster."""
    from resources.run_context import RunContext

    return RunContext(
        path=str(settings.home.path),
        profile_name=settings.reference,
        changes=list(settings.changes),
        unverified=settings.unverified,
    )


def _opened(settings: Settings, id: str, why: str) -> Study:
    from assets.checkpoint import training_rows
    from resources.progress import Progress
    from resources.run_context import StageContext
    from resources.run_record import StageReport

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
    # the command that resumes it now
    pipeline_run.change(why=why, profile=settings.reference, changes=settings.changes)
    report = StageReport(Progress(pipeline_run.progress_file, "checkpoint"))
    stage = StageContext(context_of(settings), pipeline_run, report)
    stage.report.progress.tell("begin")  # for `ratchet jobs watch`
    return Study(settings, stage, training_rows(stage))


def write_report(folder: Path, name: str, facts: Mapping[str, Any], text: str) -> Path:
    """`<name>.json` and `<name>.md` beside each other; returns the latter."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")
    (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return folder / f"{name}.md"
