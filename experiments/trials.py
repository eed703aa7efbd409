"""The trials of a search: their jobs, their outcomes, and the results table.

In: Optuna's record of the search, and the trainings' folders. Out: a table and `tuning.json`.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from assets.markdown import markdown
from evaluation.statistics.hypothesis_tests import wilson
from experiments.search_space import change, space_of
from experiments.study import Study, write_report
from resources.settings import Settings
from verl_jobs import faults
from verl_jobs.config.training import Training
from verl_jobs.job import TrainingJob, metrics
from verl_jobs.metrics.figures import seconds_trained
from verl_jobs.trainer.remote_checkpoints import Mirror

if TYPE_CHECKING:
    import optuna

Point = Mapping[str, Any]


@dataclass(frozen=True)
class TrialOutcome:
    """The state of a trial.

    best: share of validation problems solved, in [0, 1]; None before the first validation.
    """

    number: int
    point: Point
    best: float | None
    best_step: int
    step: int
    minutes: float
    end: str


@dataclass(frozen=True)
class Trials:
    """The trials of one search. base: the job that each trial modifies."""

    search: optuna.Study
    base: TrainingJob

    def job(self, point: Point) -> TrainingJob:
        return trial_job(self.base, point)

    def begun(self) -> list[optuna.trial.FrozenTrial]:
        """Return the trials that have started, in their order."""
        return [trial for trial in self.search.trials if trial.state.name != "WAITING"]

    def ended(self) -> list[int]:
        return [trial.number + 1 for trial in self.begun() if trial.state.is_finished()]

    def failed(self) -> list[int]:
        """Return the trials that failed. The next command trains them again."""
        return [each.number + 1 for each in self.begun() if each.user_attrs.get("failed")]

    def outcomes(self) -> list[TrialOutcome]:
        """Return the state of all trials in the order in which they began."""
        return [self._outcome(trial) for trial in self.begun()]

    def best(self) -> TrialOutcome | None:
        """Return the trial with the best validation; of equal trials the first."""
        validated = [each for each in self.outcomes() if each.best is not None]
        return max(validated, key=lambda each: (each.best or 0.0, -each.number), default=None)

    def _outcome(self, trial: optuna.trial.FrozenTrial) -> TrialOutcome:
        job, pruned = self.job(trial.params), trial.state.name == "PRUNED"
        last = trial.last_step if pruned else None
        # A training that is stopped early may have validated once more while it ended.
        curve = [point for point in validations(job) if last is None or point[0] <= last]
        step, best = max(curve, key=lambda each: (each[1], -each[0]), default=(0, None))
        failed = trial.user_attrs.get("failed")
        end = "all steps" if job.done is not None else "interrupted"
        end = f"failed: {failed}" if failed else end
        end = f"others were better at step {last}" if pruned else end
        return TrialOutcome(
            number=trial.number + 1,
            point=trial.params,
            best=best,
            best_step=step,
            step=curve[-1][0] if curve else 0,
            minutes=seconds_trained(metrics(job.path)) / 60,
            end=job.stopped or end,
        )


def describe(point: Point) -> str:
    return ", ".join(f"{_short(key)} {_figure(value)}" for key, value in point.items())


def trial_job(base: TrainingJob, point: Point) -> TrainingJob:
    """Return the job of one trial, with a folder derived from its settings.

    `point` has keys as in a profile, e.g. training.scale.updates.
    """
    settings = base.training.model_dump()
    for key, value in point.items():
        *sections, last = key.split(".")[1:]
        section = settings
        for name in sections:
            section = section[name]
        section[last] = value
    job = base.model_copy(update={"training": Training.model_validate(settings)})
    return job.model_copy(update={"folder": str(Path(base.folder).parent / job.key[:12])})


def validations(job: TrainingJob) -> list[tuple[int, float]]:
    """Return (step, share solved) of each validation, without the start policy's."""
    return [(step, score) for step, score in job.validations().items() if step > 0]


def discard_saves(job: TrainingJob) -> None:
    """Remove the checkpoints of a trial that has ended, and their copies; its metrics stay."""
    for part in ("saves", "candidates"):
        shutil.rmtree(job.path / part, ignore_errors=True)
    if not job.mirror:
        return
    try:
        Mirror(job.mirror).clear()
    # any error of the store's client: it leaves files there, but must not end the search
    except Exception as error:
        text = f"the copies in {job.mirror} could not be removed: {type(error).__name__}: {error}"
        faults.record(job.path, text)


def report(trials: Trials, study: Study) -> Path:
    """Write `tuning.md` and `tuning.json` under the study's reports. Return the page's path."""
    best, tasks = trials.best(), int(study.rows.manifest.facts["validation"])
    command = f"    {train_command(best, study.settings)}\n" if best else ""
    text = (
        f"# {study.id}\n\n{markdown(columns(trials), rows(trials, tasks))}\n\n"
        f"{summary(best, tasks)}\n\n{command}"
    )
    facts = {
        "space": {key: repr(span) for key, span in space_of(study.profile).items()},
        "trials": [asdict(each) for each in trials.outcomes()],
    }
    return write_report(study.reports, "tuning", facts, text)


def columns(trials: Trials) -> tuple[str, ...]:
    keys: Point = next((each.params for each in trials.begun()), {})
    return (
        "trial",
        *map(_short, keys),
        "best validation",
        "95 % interval",
        "at step",
        "steps",
        "minutes",
        "how it ended",
    )


def rows(trials: Trials, tasks: int) -> list[tuple[str, ...]]:
    """Return the table's rows, best trial first. tasks: the number of validation problems."""
    outcomes = sorted(
        trials.outcomes(),
        key=lambda each: (-1.0 if each.best is None else each.best, -each.number),
        reverse=True,
    )
    return [
        (
            str(each.number),
            *map(_figure, each.point.values()),
            *_share_and_interval(each.best, tasks),
            str(each.best_step) if each.best is not None else "",
            str(each.step),
            f"{each.minutes:.1f}",
            each.end,
        )
        for each in outcomes
    ]


def summary(best: TrialOutcome | None, tasks: int) -> str:
    if best is None:
        return "No trial has reached a validation yet."
    return (
        f"Best: trial {best.number}. All trials were compared on the same {tasks} validation "
        "problems, so its score is biased upwards, and more so with more trials. The promotion "
        "gate uses new problems:"
    )


def train_command(best: TrialOutcome, settings: Settings) -> str:
    """Return the command that trains with the trial's settings and runs the promotion gate."""
    changes = [
        each for each in settings.changes if each and each.partition("=")[0] not in best.point
    ]
    options = [each for each in changes if not each.startswith("tuning.")] + [
        change(key, value) for key, value in best.point.items()
    ]
    return shlex.join(
        [
            "ratchet",
            "train",
            "--profile",
            settings.reference,
            *(part for each in options for part in ("--set", each)),
        ]
    )


def show(trials: Trials, page: Path, study: Study, console: Console) -> None:
    best, tasks = trials.best(), int(study.rows.manifest.facts["validation"])
    table = Table(box=None, header_style="dim")
    for name in columns(trials):
        table.add_column(
            name,
            justify="left" if name == "how it ended" else "right",
            no_wrap=name != "how it ended",
        )
    for row in rows(trials, tasks):
        table.add_row(*row, style="bold" if best and row[0] == str(best.number) else "")
    console.print(table)
    console.print(summary(best, tasks), soft_wrap=True, highlight=False)
    if best:
        console.print(
            f"  {train_command(best, study.settings)}",
            soft_wrap=True,
            highlight=False,
            markup=False,
        )
    console.print(f"Report: {page}", soft_wrap=True, highlight=False)


def _share_and_interval(best: float | None, tasks: int) -> tuple[str, str]:
    if best is None:
        return "", ""
    low, high = wilson(round(best * tasks), tasks)
    return f"{100 * best:.1f} %", f"{100 * low:.0f} to {100 * high:.0f}"


def _short(key: str) -> str:
    return key.rpartition(".")[2].replace("_", " ")


def _figure(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
