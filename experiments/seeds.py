"""`ratchet train --seeds 5`: run one training with several seeds and report mean and interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from optuna.trial import Trial
from rich.console import Console
from rich.table import Table

from assets.markdown import markdown
from evaluation.reports.plots import Band, bands
from evaluation.statistics.hypothesis_tests import t_interval
from experiments.loop import RunningCell
from experiments.study import (
    Outcome,
    Study,
    StudyResult,
    outcome,
    run_study,
    write_report,
)
from experiments.training import training, trainings_at_once
from resources.settings import Settings
from verl_jobs.job import TrainingJob

COLUMNS = (
    "seed",
    "validation, start",
    "best",
    "gain, points",
    "at step",
    "steps",
    "minutes",
    "ended early",
)


def train_seeds(count: int, settings: Settings, console: Console) -> int:
    """Train with `count` seeds, skip those that have ended, and print the table.

    Returns exit code 0, or 1 if a training failed.
    """

    def measure(study: Study) -> StudyResult:
        jobs = [study.job(1000 * study.profile.seed + number) for number in range(1, count + 1)]
        failed = train_all(study, jobs, console)
        outcomes = [outcome(job) for job in jobs if job.done is not None]
        if outcomes:
            show(outcomes, report(outcomes, failed, study), console)
        return StudyResult(failed=len(failed), remaining=len(failed))

    return run_study(settings, f"ratchet train --seeds {count}", console, measure)


def train_all(study: Study, jobs: Sequence[TrainingJob], console: Console) -> dict[int, str]:
    """Train the jobs that have not ended. Return the seeds that failed, with the reason."""
    by_key = {job.key: job for job in jobs}
    titles = {
        job.key: f"seed {job.seed} ({number} of {len(jobs)})" for number, job in enumerate(jobs, 1)
    }
    record = study.record("seeds", console)

    def start(trial: Trial) -> RunningCell:
        key = trial.user_attrs["cell"]
        console.print(f"{titles[key]} ...", highlight=False)
        yield from training(by_key[key], study, titles[key], console)
        return outcome(by_key[key]).best

    record.run(record.named(titles), start, at_once=trainings_at_once(study))
    return {job.seed: record.failed[job.key] for job in jobs if job.key in record.failed}


def report(outcomes: Sequence[Outcome], failed: dict[int, str], study: Study) -> Path:
    """Write table, figures and plot under the home's reports. Return the page's path."""
    folder = study.reports
    folder.mkdir(parents=True, exist_ok=True)
    curves = {
        "validation": [each.curve for each in outcomes],
        "reward": [each.rewards for each in outcomes],
    }
    (folder / "seeds.svg").write_text(
        bands([Band(name, runs) for name, runs in curves.items() if any(runs)])
    )
    lines = [*(f"seed {seed} failed: {why}" for seed, why in failed.items()), summary(outcomes)]
    text = (
        f"# {study.id}\n\n{markdown(COLUMNS, rows(outcomes))}\n\n{chr(10).join(lines)}\n\n"
        "![validation and reward by step](seeds.svg)\n"
    )
    return write_report(
        folder,
        "seeds",
        {
            "outcomes": [asdict(each) for each in outcomes],
            "failed": failed,
            "summary": summary(outcomes),
        },
        text,
    )


def rows(outcomes: Sequence[Outcome]) -> list[tuple[str, ...]]:
    return [
        (
            str(each.seed),
            f"{100 * each.start:.1f} %",
            f"{100 * each.best:.1f} %",
            f"{100 * (each.best - each.start):+.1f}",
            str(each.best_step),
            str(each.steps),
            f"{each.minutes:.1f}",
            each.stopped or "no",
        )
        for each in outcomes
    ]


def summary(outcomes: Sequence[Outcome]) -> str:
    """Return means over seeds with their 95 % intervals (Student's t).

    The sample size is the number of seeds, not of validation problems.
    """
    parts = []
    for name, values, form in (
        ("best validation", [100 * each.best for each in outcomes], "{:.1f} %"),
        ("gain", [100 * (each.best - each.start) for each in outcomes], "{:+.1f} points"),
    ):
        mean = sum(values) / len(values)
        interval = " (one seed has no interval)"
        if len(values) > 1:
            low, high = t_interval(values)
            interval = f" (95 % interval {low:.1f} to {high:.1f})"
        parts.append(f"{name} {form.format(mean)}{interval}")
    seeds = f"{len(outcomes)} seed{'s' if len(outcomes) > 1 else ''}"
    return (
        f"Mean of {seeds}: {', '.join(parts)}. The best checkpoint is selected on the same "
        "validation problems, so its score is biased upwards."
    )


def show(outcomes: Sequence[Outcome], page: Path, console: Console) -> None:
    table = Table(*COLUMNS, box=None, header_style="dim")
    for row in rows(outcomes):
        table.add_row(*row)
    console.print(table)
    console.print(summary(outcomes), soft_wrap=True, highlight=False)
    console.print(f"Report: {page}", soft_wrap=True, highlight=False)
