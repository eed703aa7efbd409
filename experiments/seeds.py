"""`ratchet train --seeds 5`: the same training with several seeds, one after another, and what they
agree on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from assets.tables import markdown
from evaluation.reports.plots import Band, bands
from evaluation.statistics.tests import t_interval
from experiments.study import NotPrepared, Outcome, Study, outcome, study, write_report
from pipelines.launch import INTERRUPTED
from resources.ray.job import train
from resources.ray.private import TrainingFailed
from verl_jobs.job import VALIDATION, TrainingJob, metrics

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


def train_seeds(count: int, profile_name: str | None, console: Console) -> int:
    """Train with `count` seeds, skipping those that ended before, and print the table. Exit code 0,
    or 1 if a training failed.
    """
    failed: dict[int, str] = {}
    try:
        with study(profile_name, f"ratchet train --seeds {count}", console) as made:
            jobs = [made.job(1000 * made.profile.seed + number) for number in range(1, count + 1)]
            for number, job in enumerate(jobs, 1):
                try:
                    run(job, made, f"seed {job.seed} ({number} of {count})", console)
                except TrainingFailed as error:
                    failed[job.seed] = str(error)
                    console.print(
                        f"seed {job.seed}: {error}", style="red", soft_wrap=True, highlight=False
                    )
            found = [outcome(job) for job in jobs if job.done is not None]
            if found:
                show(found, report(found, failed, made), console)
            made.stage.pipeline_run.change(state="open" if failed else "done")
    except NotPrepared as error:
        return error.code
    except KeyboardInterrupt:
        console.print("Stopped. What was done is kept: the same command goes on from here.")
        return INTERRUPTED
    return 1 if failed else 0


def run(job: TrainingJob, made: Study, title: str, console: Console) -> None:
    """One training to its end, told line by line as it is validated. Raises TrainingFailed."""
    if job.done is not None:
        return console.print(f"{title}: there already", highlight=False)
    console.print(f"{title} ...", highlight=False)
    told = -1

    def look() -> None:
        nonlocal told
        history = metrics(job.path)
        if history:
            last = history[-1]
            made.stage.report.progress.at(
                last["step"],
                job.training.steps,
                f"{title}, reward {last.get('critic/score/mean', 0.0):.2f}",
            )
        for row in history:
            if VALIDATION in row and row["step"] > told:
                told = row["step"]
                console.print(
                    (
                        f"  {title}: step {told} of {job.training.steps}, validation "
                        f"{100 * row[VALIDATION]:.1f} %"
                    ),
                    highlight=False,
                )

    train(job, made.ray(job), on_poll=look)
    look()


def report(found: Sequence[Outcome], failed: dict[int, str], made: Study) -> Path:
    """Table, figures and plot under the home's reports. Returns the page."""
    folder = made.reports
    folder.mkdir(parents=True, exist_ok=True)
    curves = {
        "validation": [each.curve for each in found],
        "reward": [each.rewards for each in found],
    }
    (folder / "seeds.png").write_bytes(
        bands([Band(name, runs) for name, runs in curves.items() if any(runs)])
    )
    told = [*(f"seed {seed} failed: {why}" for seed, why in failed.items()), summary(found)]
    text = (
        f"# {made.id}\n\n{markdown(COLUMNS, rows(found))}\n\n{chr(10).join(told)}\n\n![validation "
        "and reward by step](seeds.png)\n"
    )
    return write_report(
        folder,
        "seeds",
        {"outcomes": [asdict(each) for each in found], "failed": failed, "summary": summary(found)},
        text,
    )


def rows(found: Sequence[Outcome]) -> list[tuple[str, ...]]:
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
        for each in found
    ]


def summary(found: Sequence[Outcome]) -> str:
    """Return means over seeds with their 95 % intervals (Student's t): a seed is one draw, however
    many problems validated it.
    """
    parts = []
    for name, values, form in (
        ("best validation", [100 * each.best for each in found], "{:.1f} %"),
        ("gain", [100 * (each.best - each.start) for each in found], "{:+.1f} points"),
    ):
        mean = sum(values) / len(values)
        between = " (one seed has no interval)"
        if len(values) > 1:
            low, high = t_interval(values)
            between = f" (95 % interval {low:.1f} to {high:.1f})"
        parts.append(f"{name} {form.format(mean)}{between}")
    over = f"{len(found)} seed{'s' if len(found) > 1 else ''}"
    return (
        f"Mean of {over}: {', '.join(parts)}. The best of several validations is picked on the "
        "same problems."
    )


def show(found: Sequence[Outcome], page: Path, console: Console) -> None:
    table = Table(*COLUMNS, box=None, header_style="dim")
    for row in rows(found):
        table.add_row(*row)
    console.print(table)
    console.print(summary(found), soft_wrap=True, highlight=False)
    console.print(f"Its plot and table: {page}", soft_wrap=True, highlight=False)
