"""Several trainings from one start, none of them promoted: the basis of `ratchet train --seeds`.

A study's name follows from the profile and the champion, a training's folder from its job: when the
command is repeated, trainings that ended are not repeated.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from artifacts.hashing import hash_data
from pipelines.launch import explain_failure, name_of, ready, start_worker, watched
from pipelines.process import MARK
from pipelines.run_worker import BUSY
from pipelines.watch.view import STAGES, View
from resources import lease
from resources.config.load import CHANGES, load_profile
from resources.config.profile import Profile
from resources.home import Home
from resources.ray.place import ray_of
from resources.ray.private import Joined, Private
from resources.registry.ledger import ledger_of
from resources.run_record import PipelineRun, open_run
from verl_jobs.job import TrainingJob, metrics
from verl_jobs.metrics.figures import seconds_trained, series
from verl_jobs.planner.preflight import check_settings

if TYPE_CHECKING:
    from artifacts.store import Artifact
    from resources.run_context import StageContext

BEFORE = tuple(STAGES)[
    : tuple(STAGES).index("checkpoint")
]  # stages that all trainings of a study share


class NotPrepared(RuntimeError):
    """The stages before the trainings have not been done; `code` is what the command ends with."""

    def __init__(self, code: int) -> None:
        super().__init__(f"ended with {code}")
        self.code = code


@dataclass(frozen=True)
class Study:
    """A prepared study, whose lease this process holds."""

    home: Home
    profile: Profile
    profile_name: str
    stage: StageContext
    rows: Artifact

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
        from resources.run_context import RunContext, StageContext

        profile = load_profile(self.profile_name, changes)
        check_settings(profile.training)
        run_context = RunContext(path=str(self.home.path), profile_name=self.profile_name)
        run_context.__dict__["profile"] = profile  # what its cached property holds
        stage = StageContext(run_context, self.stage.pipeline_run, self.stage.report)
        return replace(self, profile=profile, stage=stage, rows=training_rows(stage))

    def job(self, seed: int, training: Mapping[str, Any] | None = None) -> TrainingJob:
        """What one training is told. training: changes to the profile's section of that name."""
        from assets.checkpoint import training_job

        job = training_job(self.stage, self.rows)
        told = type(job.training).model_validate(job.training.model_dump() | dict(training or {}))
        job = job.model_copy(update={"seed": seed, "training": told, "chain": f"{self.id}-s{seed}"})
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


@contextmanager
def study(profile_name: str | None, why: str, console: Console) -> Iterator[Study]:
    """Run the stages before the trainings, in a process of their own, unless they are done. Raises
    NotPrepared.

    why: the command to repeat, without profile and `--set`; it resumes.
    """
    home, profile = ready(profile_name)
    champion = ledger_of(home, profile_name).champion()
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
        view = View(folder, f"{id} · profile {name_of(profile_name)} · {why}", BEFORE)
        code = watched(
            lambda: start_worker(home, "prepare", id, profile_name, why),
            view,
            PipelineRun(folder),
            console,
        )
        if code:
            explain_failure(folder, code, console)
            raise NotPrepared(code)
        yield _opened(home, profile, profile_name, id, why)
    finally:
        lease.give_back(home.lease)


def _opened(home: Home, profile: Profile, profile_name: str | None, id: str, why: str) -> Study:
    from assets.checkpoint import training_rows
    from resources.progress import Progress
    from resources.run_context import RunContext, StageContext
    from resources.run_record import StageReport

    run_context = RunContext(path=str(home.path), profile_name=name_of(profile_name))
    changes = os.environ.get(CHANGES, "").splitlines()
    pipeline_run = open_run(
        home.runs,
        id,
        kind="study",
        base_seed=profile.seed,
        profile=name_of(profile_name),
        why=why,
        champion=None,
        changes=changes,
    )
    pipeline_run.change(
        why=why, profile=name_of(profile_name), changes=tuple(changes)
    )  # of the command that goes on with it now
    stage = StageContext(
        run_context, pipeline_run, StageReport(Progress(pipeline_run.progress_file, "checkpoint"))
    )
    stage.report.progress.tell("begin")  # for who watches
    return Study(home, profile, name_of(profile_name), stage, training_rows(stage))


def write_report(folder: Path, name: str, facts: Mapping[str, Any], text: str) -> Path:
    """`<name>.json` and `<name>.md` beside each other; returns the latter."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")
    (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return folder / f"{name}.md"
