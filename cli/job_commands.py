"""`ratchet jobs list|show|logs|stop|resume|watch`, `ratchet samples`, `ratchet draws`: trainings as their folders tell them, running or not.

Knows no Dagster.
"""

from __future__ import annotations

import os
import shlex
import signal
import time
from pathlib import Path
from statistics import fmean

import yaml
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.syntax import Syntax
from rich.table import Table

from pipelines.launch import INTERRUPTED, Sampler, demo
from pipelines.watch.curve import curve, smoothed
from pipelines.watch.view import REWARD, View
from resources import lease
from resources.config.profile import load_profile
from resources.home import Home
from resources.ray.kuberay import ray_cluster, ray_job
from resources.run_record import Chain, Record, records
from verl_jobs import faults, samples
from verl_jobs.curriculum import draws
from verl_jobs.curriculum.draws import Draw
from verl_jobs.job import VALIDATION, TrainingJob, metrics
from verl_jobs.metrics.health import alarms
from verl_jobs.samples import CUT
from verl_jobs.trainer.early_stop import a_token

LONGEST_END_S = 120.0  # the training saves, Ray notices that nobody holds it any more
TAIL = 40


def list_jobs(console: Console) -> int:
    home = Home.from_environment()
    table = Table(box=None, header_style="dim")
    for name in ("run", "state", "step", "reward", "solved", "minutes", "profile"):
        table.add_column(name, no_wrap=name != "profile")
    for record in records(home.runs):
        if record.kind in ("chain", "study"):
            rows = metrics(folder) if (folder := _training(home, record.id)) else []
            job = TrainingJob.read(folder / "job.json") if folder else None
            table.add_row(
                record.id, _state(home, record), f"{rows[-1]['step'] if rows else 0} of {job.training.steps}" if job else "",
                _last(rows, REWARD, ".3f"), _last(rows, VALIDATION, ".1%"), f"{record.took_minutes:.1f}",
                " ".join([record.profile, *record.changes]),
            )  # fmt: skip
    console.print(
        table
        if table.row_count
        else "No training has been started yet: `ratchet demo` or `ratchet train` starts one."
    )
    return 0


def show_job(run: str | None, console: Console) -> int:
    """What it is told, how far it is, its curve and where its files lie."""
    home, record, folder = _found(run)
    job, rows = TrainingJob.read(folder / "job.json"), metrics(folder)
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    told = {
        "run": f"{record.id}, {_state(home, record)}",
        "profile": " ".join([record.profile, *record.changes]),
        "algorithm": f"{job.training.method.title} ({job.training.method.paper})",
        "start": f"{job.start} ({job.inputs.get('start', '')[:12]})",
        "seed": str(job.seed),
        "reward": f"{job.reward_hash[:12]}, battery {job.battery[:24] or 'not run'}",
        "curriculum": _curriculum(job, rows),
        "step": f"{rows[-1]['step'] if rows else 0} of {job.training.steps}"
        + (f", ended early: {job.stopped}" if job.stopped else ""),
        "reward, last": _last(rows, REWARD, ".3f"),
        "validation": "  ".join(
            f"{row['step']}: {row[VALIDATION]:.1%}" for row in rows if VALIDATION in row
        ),
        "entropy, length": f"{_last(rows, 'actor/entropy', '.3f')}, {_last(rows, 'response_length/mean', '.0f')} tokens"
        + (f", {cut} cut" if (cut := _last(rows, CUT, ".1%")) else ""),
        "a step": f"{_last(rows, 'timing_s/step', '.1f')} s, {_last(rows, 'perf/throughput', '.0f')} tokens/s",
        "folder": str(folder),
        "watch": "; ".join(alarms(a_token(rows, job.training))),
        "faults": "\n".join(map(str, faults.read(folder))),
        "error": record.error,
    }
    of_steps = (
        () if any(REWARD in row for row in rows) else ("entropy, length", "a step")
    )  # which say nothing before the first
    for key, value in told.items():
        if value and key not in of_steps:
            table.add_row(key, escape(value))
    console.print(table)
    rewards = [float(row[REWARD]) for row in rows if REWARD in row]
    if len(rewards) > 1:
        smooth = smoothed(rewards, 5)
        console.print(
            f"\nreward, mean of 5 steps: {smooth[0]:.3f} to {smooth[-1]:.3f}", highlight=False
        )
        console.print(*curve(smooth, min(console.width - 4, 72), 6), sep="\n", highlight=False)
    return 0


def _curriculum(job: TrainingJob, rows: list[dict[str, object]]) -> str:
    """Nothing where problems are drawn uniformly."""
    if (schedule := job.training.curriculum.schedule) == "uniform":
        return ""
    seen = [
        _last(rows, f"curriculum/{name}", ".0%")
        for name in ("pass_rate", "expected_pass_rate", "informative")
    ]
    return (
        f"{schedule}: {seen[0]} passed, {seen[1]} expected, of {seen[2]} some"
        if all(seen)
        else schedule
    )


def show_logs(run: str | None, lines: int, console: Console) -> int:
    """The last lines of the trainer's log."""
    _, _, folder = _found(run)
    path = folder / "trainer.log"
    for line in (
        path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]
        if path.exists()
        else []
    ):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.print(f"({path})", style="dim", soft_wrap=True, highlight=False)
    return 0


def stop(run: str | None, console: Console) -> int:
    """Ends the run that trains; what was saved is kept. 0 when all of it has ended, 1 when it has not within a minute."""
    home = Home.from_environment()
    holder = lease.holder(home.lease)
    if run and not (home.runs / run).is_dir():
        raise FileNotFoundError(
            f"no run {run} in {home.path}: there are {', '.join(record.id for record in records(home.runs)) or 'none yet'}"
        )
    if holder is None or (run and holder.chain != run):
        console.print(
            f"{f'{run} does not train' if run else 'No training runs'}{f'; {holder.chain} does' if holder else ''}.",
            soft_wrap=True,
        )
        return 0
    os.kill(holder.pid, signal.SIGTERM)
    deadline = time.monotonic() + LONGEST_END_S
    while lease.holder(home.lease) is not None or (home.path / "ray" / "head.json").exists():
        if time.monotonic() > deadline:
            console.print(
                f"{holder.chain} has not ended within {LONGEST_END_S:.0f} s: see {home.path / 'ray'}",
                style="red",
                soft_wrap=True,
            )
            return 1
        time.sleep(0.5)
    console.print(
        f"{holder.chain} is stopped. What was saved is kept: `{_going_on(home, holder.chain)}` goes on from there.",
        soft_wrap=True,
    )
    return 0


def _going_on(home: Home, run: str) -> str:
    """The command that goes on with it: a study's is the one that it was begun with."""
    record = next((record for record in records(home.runs) if record.id == run), None)
    if record is None:  # a Reviewer's training has none
        return "ratchet reviewer reinforce"
    if record.kind != "study":
        return "ratchet jobs resume"
    return " ".join(
        [
            record.why,
            "--profile",
            shlex.quote(record.profile),
            *(f"--set {shlex.quote(change)}" for change in record.changes),
        ]
    )


def resume(profile: str | None, console: Console) -> int:
    """Goes on with the open chain; says so where there is none, and what goes on with a study."""
    home = Home.from_environment()
    unended = [record for record in records(home.runs) if record.state == "open"]
    if not any(record.kind == "chain" for record in unended):
        console.print("No run is open: all have been decided. `ratchet train` starts the next.")
        for record in unended:
            if record.kind == "study":
                console.print(
                    f"{record.id} has not ended: `{_going_on(home, record.id)}` goes on with it.",
                    soft_wrap=True,
                    highlight=False,
                )
        return 0
    return demo(profile, console)


def watch(run: str | None, console: Console) -> int:
    """A live table of a run that another process works on, until it ends or Ctrl-C."""
    home = Home.from_environment()
    if (
        (holder := lease.holder(home.lease))
        and run in (None, holder.chain)
        and (home.runs / holder.chain).is_dir()
    ):  # also before it trains
        chain = Chain(home.runs / holder.chain)
        record = chain.record
    else:
        home, record, folder = _found(run)
        chain = Chain(folder.parent.parent)
    view = View(
        chain.folder,
        f"{record.id} · profile {' '.join([record.profile, *record.changes])}",
        from_start=True,
    )
    sampler = Sampler(chain, counts=False)
    with Live(view, console=console, refresh_per_second=4, transient=False):
        try:
            while (holder := lease.holder(home.lease)) and holder.chain == record.id:
                view.follow()
                sampler.look(view)
                time.sleep(0.5)
            view.follow()
        except KeyboardInterrupt:
            return INTERRUPTED
    if not console.is_terminal:  # there the picture's last line is not ended
        console.line()
    console.print(f"{record.id}: {_state(home, chain.record)}")
    return 0


def show_samples(
    run: str | None, step: int | None, worst: bool, best: bool, count: int, console: Console
) -> int:
    """Answers of a training step with verdict and reward trace, in the order of the batch, or by reward."""
    _, record, folder = _found(run)
    there = samples.steps(folder)
    chosen = step if step is not None else there[-1] if there else 0
    found = samples.read(folder, chosen)
    if worst or best:
        found.sort(key=lambda sample: (sample.reward, sample.problem_id), reverse=best)
    verdicts = {
        verdict: sum(sample.verdict == verdict for sample in found)
        for verdict in sorted({sample.verdict for sample in found})
    }
    cut = f"; {many} cut by their length" if (many := sum(sample.cut for sample in found)) else ""
    console.print(
        f"{record.id}, step {chosen}: {len(found)} answers, {', '.join(f'{count} {verdict}' for verdict, count in verdicts.items())}{cut}"
    )
    for sample in found[:count]:
        ended = ", [yellow]cut by its length[/]" if sample.cut else ""
        trace = ", ".join(f"{name} {value:+.2f}" for name, value in sample.trace.items())
        console.rule(
            f"{sample.problem_id}  [bold]{sample.verdict}[/]  reward {sample.reward:+.2f} ({trace}){ended}",
            align="left",
            style="dim",
        )
        console.print(Syntax(sample.answer, "python", background_color="default", word_wrap=True))
    return 0


def print_manifest(run: str | None, cluster: bool, profile: str | None, console: Console) -> int:
    """YAML for `kubectl apply -f -`: a RayJob of a run's job file, or the RayCluster that the profile submits to."""
    loaded = load_profile(profile)
    manifest = (
        ray_cluster(loaded)
        if cluster
        else ray_job(loaded, TrainingJob.read(_found(run)[2] / "job.json"))
    )
    console.print(
        yaml.safe_dump(manifest, sort_keys=False, width=1000),
        markup=False,
        highlight=False,
        soft_wrap=True,
        end="",
    )
    return 0


def show_draws(run: str | None, step: int | None, console: Console) -> int:
    """A line a step, or the problems of one step, those first whose answers agreed least with what was expected."""
    _, record, folder = _found(run)
    schedule = TrainingJob.read(folder / "job.json").training.curriculum.schedule
    console.print(f"{record.id}, curriculum {schedule}", highlight=False)
    console.print(
        _drawn_steps(folder) if step is None else _drawn_problems(draws.read(folder, step)),
        highlight=False,
    )
    return 0


def _drawn_steps(folder: Path) -> Table:
    table = _right("step", "problems", "new", "expected", "passed", "some passed")
    known: set[str] = set()
    for step in samples.steps(folder):
        drawn = draws.read(folder, step)
        ids = {draw.problem_id for draw in drawn}
        expected = [draw.expected for draw in drawn if draw.expected is not None]
        table.add_row(
            str(step), str(len(drawn)), str(len(ids - known)), f"{fmean(expected):.0%}" if expected else "",
            f"{fmean(draw.pass_rate for draw in drawn):.0%}", f"{fmean(0 < draw.passed < draw.n for draw in drawn):.0%}",
        )  # fmt: skip
        known |= ids
    return table


def _drawn_problems(drawn: list[Draw]) -> Table:
    table = _right("problem", "expected", "passed")
    for draw in sorted(
        drawn, key=lambda draw: (-abs(draw.pass_rate - (draw.expected or 0.0)), draw.problem_id)
    ):
        table.add_row(
            draw.problem_id,
            "" if draw.expected is None else f"{draw.expected:.0%}",
            f"{draw.passed} of {draw.n}",
        )
    return table


def _right(*names: str) -> Table:
    table = Table(box=None, header_style="dim")
    for name in names:
        table.add_column(name, justify="left" if name == "problem" else "right")
    return table


def folder_of(run: str | None) -> Path:
    """The newest training folder of a run. Raises FileNotFoundError with the runs there are."""
    return _found(run)[2]


def _found(run: str | None) -> tuple[Home, Record, Path]:
    """Home, record and newest training folder of the run, the newest run where none is named. Raises FileNotFoundError with the runs there are."""
    home = Home.from_environment()
    trained = [record for record in records(home.runs) if _training(home, record.id)]
    chosen = next((record for record in reversed(trained) if run in (None, record.id)), None)
    if chosen is None or (folder := _training(home, chosen.id)) is None:
        there = ", ".join(record.id for record in trained) or "none yet: `ratchet train` starts one"
        raise FileNotFoundError(
            f"no training{f' {run}' if run else ''} in {home.path}: there are {there}"
        )
    return home, chosen, folder


def _training(home: Home, run: str) -> Path | None:
    """The newest job's folder of a run."""
    jobs = sorted(
        (home.runs / run / "training").glob("*/job.json"), key=lambda path: path.stat().st_mtime
    )
    return jobs[-1].parent if jobs else None


def _state(home: Home, record: Record) -> str:
    holder = lease.holder(home.lease)
    if holder and holder.chain == record.id:
        return "trains"
    ends = {
        "open": "interrupted",
        "failed": "given up",
        "done": "ended" if record.kind == "study" else "decided",
    }
    return {"promote": "promoted", "refuse": "not promoted", "install": "installed"}.get(
        record.decision, ends[record.state]
    )


def _last(rows: list[dict[str, object]], key: str, form: str) -> str:
    found = [row[key] for row in rows if key in row]
    return format(float(str(found[-1])), form) if found else ""
