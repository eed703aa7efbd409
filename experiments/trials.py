"""The trials of a search: one record per trial in the search's folder, and the results table.

base.json         the job that all trials modify
0003.json         a trial: its point of the search space, and the error if it failed
worse-<key>.json  the step at which a trial was stopped early (verl_jobs/search/search.py)
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from artifacts.atomic import write_atomic
from artifacts.integrity import reading
from assets.markdown import markdown
from evaluation.statistics.hypothesis_tests import wilson
from experiments.search_space import change, space_of
from experiments.study import Study, write_report
from resources.settings import Settings
from verl_jobs.job import TrainingJob, metrics
from verl_jobs.metrics.figures import seconds_trained
from verl_jobs.search.search import (
    BASE,
    COMMAND,
    last_log_line,
    stop_marker,
    stopped_at,
    trial_job,
    validations,
)

Point = Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
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


class Trials:
    """The recorded trials of one search, read from and written to its folder."""

    def __init__(self, folder: Path, base: TrainingJob) -> None:
        self.folder, self.base, self.command = folder, base, folder / COMMAND
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / BASE, base.model_dump_json(indent=1))

    def records(self) -> dict[int, dict[str, Any]]:
        """Return the recorded trials by number. Raises CorruptArtifact for a damaged record."""
        records = {}
        for path in sorted(self.folder.glob("[0-9]*.json")):
            with reading(path, "restore it from a backup, or delete it, and the trial runs again"):
                record = json.loads(path.read_text(encoding="utf-8"))
                records[int(path.stem)] = {name: record[name] for name in ("point", "failed")}
        return records

    def points(self) -> list[Point]:
        """Return the trials' points in the order in which they were sampled."""
        return [record["point"] for record in self.records().values()]

    def begin(self, point: Point) -> tuple[int, bool]:
        """Record the start of a trial. Return its number, and whether it is new.

        The error of an earlier failure is cleared, because the trial runs again.
        """
        records = self.records()
        number = next(
            (number for number, record in records.items() if record["point"] == dict(point)), 0
        )
        if not number or records[number]["failed"]:
            self._write(number or len(records) + 1, point, "")
        return number or len(records) + 1, not number

    def number(self, point: Point) -> int:
        return self.begin(point)[0]

    def end(self, number: int, step: int) -> bool:
        """Record that Ray Tune has finished this trial at `step`.

        Returns whether this was an early stop because other trials were better.
        """
        job = self.job(number)
        if job.done is not None or (path := stop_marker(self.folder, job)).exists():
            return False
        write_atomic(path, json.dumps({"step": step}))
        return True

    def fail(self, number: int) -> str:
        """Record and return the last log line of a trial that failed."""
        why = last_log_line(self.job(number))
        self._write(number, self.records()[number]["point"], why)
        return why

    def over(self, number: int) -> bool:
        job = self.job(number)
        return job.done is not None or stop_marker(self.folder, job).exists()

    def ended(self) -> list[int]:
        return [number for number in self.records() if self.over(number)]

    def failed(self) -> list[int]:
        return [number for number, record in self.records().items() if record["failed"]]

    def describe(self, number: int) -> str:
        return ", ".join(
            f"{_short(key)} {_figure(value)}"
            for key, value in self.records()[number]["point"].items()
        )

    def outcomes(self) -> list[Outcome]:
        """Return the state of all trials in the order in which they began."""
        return [self._outcome(number, record) for number, record in self.records().items()]

    def best(self) -> Outcome | None:
        """Return the trial with the best validation; of equal trials the first."""
        validated = [each for each in self.outcomes() if each.best is not None]
        return max(validated, key=lambda each: (each.best or 0.0, -each.number), default=None)

    def _outcome(self, number: int, record: Mapping[str, Any]) -> Outcome:
        job = self.job(number)
        curve, last = validations(self.folder, job), stopped_at(self.folder, job)
        step, best = max(curve, key=lambda each: (each[1], -each[0]), default=(0, None))
        end = (
            "all steps"
            if job.done is not None
            else f"failed: {record['failed']}"
            if record["failed"]
            else "interrupted"
        )
        end = job.stopped or (f"others were better at step {last}" if last is not None else end)
        return Outcome(
            number,
            record["point"],
            best,
            step,
            curve[-1][0] if curve else 0,
            seconds_trained(metrics(job.path)) / 60,
            end,
        )

    def job(self, number: int) -> TrainingJob:
        return trial_job(self.base, self.records()[number]["point"])

    def _write(self, number: int, point: Point, error: str) -> None:
        write_atomic(
            self.folder / f"{number:04d}.json", json.dumps({"point": dict(point), "failed": error})
        )


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
    keys = next(iter(trials.points()), {})
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


def summary(best: Outcome | None, tasks: int) -> str:
    if best is None:
        return "No trial has reached a validation yet."
    return (
        f"Best: trial {best.number}. All trials were compared on the same {tasks} validation "
        "problems, so its score is biased upwards, and more so with more trials. The promotion "
        "gate uses new problems:"
    )


def train_command(best: Outcome, settings: Settings) -> str:
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
