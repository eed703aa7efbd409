"""List trainings; show one, its log, and the KubeRay manifest that runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from artifacts.charts import smoothed
from cli.display.screen import print_json
from cli.lookup.damage import Damage
from cli.lookup.runs import find_run, folder_of, last_value, run_state, training_folder
from pipelines.chart import chart_values
from pipelines.watch.curve import curve
from pipelines.watch.text import print_text
from pipelines.watch.view import REWARD
from resources.home import Home
from resources.ray.kuberay import ray_cluster, ray_job
from resources.run_record import RunRecord, readable, unreadable
from resources.settings import Settings
from verl_jobs import faults
from verl_jobs.job import VALIDATION, TrainingJob, check_metrics, metrics, stop_reason
from verl_jobs.metrics.alarms import alarms
from verl_jobs.samples import CUT
from verl_jobs.trainer.early_stop import per_token


def list_jobs(home: Home, console: Console, *, last: int, as_json: bool = False) -> int:
    """Print one line for each of the newest pipeline runs, studies and trainings, with its
    progress. Return 2 if a file is damaged, else 0.
    """
    damage, jobs = Damage(), list[dict[str, Any]]()
    known, broken = readable(home.runs), unreadable(home.runs)
    every = ((record, training_folder(home, record.id)) for record in known)
    trains = [each for each in every if each[1] or each[0].kind in ("pipeline", "study")]
    for record, folder in trains[-last:]:
        with damage.collected():
            jobs.append(_job_line(home, record, folder, damage))
    if as_json:
        print_json(jobs)
    elif jobs:
        console.print(_jobs_table(jobs))
    elif not broken:
        console.print("No training yet: `ratchet demo` or `ratchet train` starts one.")
    damage.add(map(str, broken.values()))
    return damage.exit_code()


def _job_line(home: Home, record: RunRecord, folder: Path | None, damage: Damage) -> dict[str, Any]:
    """Return state and progress of a run. reward, solved: of the last step that has one."""
    rows, steps = metrics(folder) if folder else [], None
    if folder:
        with damage.collected():
            steps = TrainingJob.read(folder / "job.json").training.steps
        with damage.collected():
            check_metrics(folder)
    return {
        "run": record.id,
        "state": run_state(home, record),
        "step": int(last_step(rows)),
        "steps": steps,
        "reward": next((row[REWARD] for row in reversed(rows) if REWARD in row), None),
        "solved": next((row[VALIDATION] for row in reversed(rows) if VALIDATION in row), None),
        "minutes": round(record.took_minutes, 2),
        "profile": record.profile,
        "changes": list(record.changes),
    }


def _jobs_table(jobs: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=None, header_style="dim")
    for name in ("run", "state", "step", "reward", "solved", "minutes", "profile"):
        table.add_column(name, no_wrap=name != "profile")
    for job in jobs:
        reward, solved, steps = job["reward"], job["solved"], job["steps"]
        table.add_row(
            job["run"],
            job["state"],
            "" if steps is None else f"{job['step']} of {steps}",
            "" if reward is None else f"{reward:.3f}",
            "" if solved is None else f"{solved:.1%}",
            f"{job['minutes']:.1f}",
            " ".join([job["profile"], *job["changes"]]),
        )
    return table


def last_step(rows: list[dict[str, object]]) -> str:
    """Return the last step that has metrics; 0 before the first."""
    return str(rows[-1]["step"]) if rows else "0"


def show_job(run: str | None, home: Home, console: Console, *, as_json: bool = False) -> int:
    """Print a training's settings, progress, folder and reward curve. Return 2 if its metrics are
    damaged, else 0. Raises FileNotFoundError, and CorruptArtifact for a damaged record or job.
    """
    if (waiting := _without_training(run, home)) is not None:
        return _show_record(waiting, home, console, as_json)
    (record, folder), damage = find_run(run, home), Damage()
    job, rows, stopped = TrainingJob.read(folder / "job.json"), metrics(folder), ""
    with damage.collected():
        stopped = stop_reason(folder)
    with damage.collected():
        check_metrics(folder)
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    rows_by_name = {
        "run": f"{record.id}, {run_state(home, record)}",
        "profile": " ".join([record.profile, *record.changes]),
        "algorithm": f"{job.training.method.title} ({job.training.method.paper})",
        "start": f"{job.start} ({job.inputs.get('start', '')[:12]})",
        "seed": str(job.seed),
        "reward": f"{job.reward_hash[:12]}, battery {job.battery[:24] or 'not run'}",
        "curriculum": _curriculum(job, rows),
        "step": f"{last_step(rows)} of {job.training.steps}"
        + (f", stopped early: {stopped}" if stopped else ""),
        "reward, last": last_value(rows, REWARD, ".3f"),
        "validation": "  ".join(
            f"{row['step']}: {row[VALIDATION]:.1%}" for row in rows if VALIDATION in row
        ),
        "entropy, length": (
            f"{last_value(rows, 'actor/entropy', '.3f')}, "
            f"{last_value(rows, 'response_length/mean', '.0f')} tokens"
        )
        + (f", {cut} truncated" if (cut := last_value(rows, CUT, ".1%")) else ""),
        "a step": (
            f"{last_value(rows, 'timing_s/step', '.1f')} s, "
            f"{last_value(rows, 'perf/throughput', '.0f')} tokens/s"
        ),
        "took": f"{record.took_minutes:.1f} minutes",
        "folder": str(folder),
        "alarms": "; ".join(alarms(per_token(rows, job.training))),
        "faults": "\n".join(map(str, faults.read(folder))),
        "error": record.error,
    }
    if as_json:
        steps = [
            {"step": row["step"], "reward": row.get(REWARD), "solved": row.get(VALIDATION)}
            for row in rows
        ]
        texts = {key: value for key, value in rows_by_name.items() if value}
        line = _job_line(home, record, folder, Damage())
        print_json({**line, "facts": texts, "metrics": steps})
        return damage.exit_code()
    # Empty before the first step.
    step_rows = () if any(REWARD in row for row in rows) else ("entropy, length", "a step")
    for key, value in rows_by_name.items():
        if value and key not in step_rows:
            table.add_row(key, escape(value))
    console.print(table)
    rewards = [float(row[REWARD]) for row in rows if REWARD in row]
    if len(rewards) > 1:
        smooth = smoothed(rewards, 5)
        console.print(
            f"\nreward, mean of 5 steps: {smooth[0]:.3f} to {smooth[-1]:.3f}", highlight=False
        )
        console.print(*curve(smooth, min(console.width - 4, 72), 6), sep="\n", highlight=False)
    return damage.exit_code()


def _without_training(run: str | None, home: Home) -> RunRecord | None:
    """Return the record of a run that is listed and has no training yet; by default of the newest
    run, if that is such a run.
    """
    records = [each for each in readable(home.runs) if each.kind in ("pipeline", "study")]
    chosen = [each for each in records if each.id == run] if run else records[-1:]
    return chosen[0] if chosen and not training_folder(home, chosen[0].id) else None


def _show_record(record: RunRecord, home: Home, console: Console, as_json: bool) -> int:
    line = _job_line(home, record, None, Damage())
    if as_json:
        print_json({**line, "facts": {"error": record.error}, "metrics": []})
        return 0
    console.print(_jobs_table([line]))
    print_text(console, record.error or f"{record.id} has no training of its own yet")
    return 0


def _curriculum(job: TrainingJob, rows: list[dict[str, object]]) -> str:
    """Return the schedule with its last pass rates; "" if problems are sampled uniformly."""
    if (schedule := job.training.curriculum.schedule) == "uniform":
        return ""
    rates = [
        last_value(rows, f"curriculum/{name}", ".0%")
        for name in ("pass_rate", "expected_pass_rate", "informative")
    ]
    return (
        f"{schedule}: pass rate {rates[0]}, expected {rates[1]}, informative {rates[2]}"
        if all(rates)
        else schedule
    )


def show_logs(run: str | None, lines: int, home: Home, console: Console) -> int:
    """Print the last lines of the trainer's log. Raises FileNotFoundError."""
    path = folder_of(run, home) / "trainer.log"
    for line in (
        path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]
        if path.exists()
        else []
    ):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    print_text(console, f"({path})", style="dim")
    return 0


def print_manifest(
    run: str | None, settings: Settings, console: Console, *, cluster: bool, values: bool
) -> int:
    """Print YAML: a RayJob for a run's job file, or the profile's RayCluster, for `kubectl apply
    -f -`; or the chart's values, for `helm upgrade --values`.
    """
    loaded = settings.profile
    if values:
        manifest = chart_values(loaded)
    elif cluster:
        manifest = ray_cluster(loaded)
    else:
        manifest = ray_job(loaded, TrainingJob.read(folder_of(run, settings.home) / "job.json"))
    console.print(
        yaml.safe_dump(manifest, sort_keys=False, width=1000),
        markup=False,
        highlight=False,
        soft_wrap=True,
        end="",
    )
    return 0
