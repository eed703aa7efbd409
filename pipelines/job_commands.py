"""`ratchet jobs list|show|logs|stop|resume|watch` and `ratchet samples`: trainings as their folders tell them, running or not. Knows no Dagster."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.syntax import Syntax
from rich.table import Table

from pipelines.curve import curve, smoothed
from pipelines.demo import INTERRUPTED, Sampler, demo
from pipelines.view import REWARD, View
from resources import lease
from resources.chain import Chain, Record, records
from resources.home import Home
from verl_jobs import samples
from verl_jobs.health import alarms
from verl_jobs.job import VALIDATION, TrainingJob, metrics

LONGEST_END_S = 60.0  # of Ray, which looks for its holders every few seconds
TAIL = 40


def list_jobs(console: Console) -> int:
    home = Home.from_environment()
    table = Table(box=None, header_style="dim")
    for name in ("run", "state", "step", "reward", "solved", "minutes", "profile"):
        table.add_column(name, no_wrap=name != "profile")
    for record in records(home.runs):
        if record.kind == "chain":
            rows = metrics(folder) if (folder := _training(home, record.id)) else []
            job = TrainingJob.read(folder / "job.json") if folder else None
            table.add_row(
                record.id, _state(home, record), f"{rows[-1]['step'] if rows else 0} of {job.training.steps}" if job else "",
                _last(rows, REWARD, ".3f"), _last(rows, VALIDATION, ".1%"), f"{record.took_minutes:.1f}",
                " ".join([record.profile, *record.changes]),
            )  # fmt: skip
    console.print(table if table.row_count else "No training has been started yet: `ratchet demo` or `ratchet train` starts one.")
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
        "step": f"{rows[-1]['step'] if rows else 0} of {job.training.steps}" + (f", ended early: {job.stopped}" if job.stopped else ""),
        "reward, last": _last(rows, REWARD, ".3f"),
        "validation": "  ".join(f"{row['step']}: {row[VALIDATION]:.1%}" for row in rows if VALIDATION in row),
        "entropy, length": f"{_last(rows, 'actor/entropy', '.3f')}, {_last(rows, 'response_length/mean', '.0f')} tokens, "
        f"{_last(rows, 'response_length/clip_ratio', '.1%')} cut",
        "a step": f"{_last(rows, 'timing_s/step', '.1f')} s, {_last(rows, 'perf/throughput', '.0f')} tokens/s",
        "folder": str(folder),
        "watch": "; ".join(alarms(rows)),
        "error": record.error,
    }
    for key, value in told.items():
        if value:
            table.add_row(key, escape(value))
    console.print(table)
    rewards = [float(row[REWARD]) for row in rows if REWARD in row]
    if len(rewards) > 1:
        smooth = smoothed(rewards, 5)
        console.print(f"\nreward, mean of 5 steps: {smooth[0]:.3f} to {smooth[-1]:.3f}", highlight=False)
        console.print(*curve(smooth, min(console.width - 4, 72), 6), sep="\n", highlight=False)
    return 0


def show_logs(run: str | None, lines: int, console: Console) -> int:
    """The last lines of the trainer's log."""
    _, _, folder = _found(run)
    path = folder / "trainer.log"
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:] if path.exists() else []:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.print(f"({path})", style="dim", soft_wrap=True, highlight=False)
    return 0


def stop(run: str | None, console: Console) -> int:
    """Ends the run that trains; what was saved is kept. 0 when all of it has ended, 1 when it has not within a minute."""
    home = Home.from_environment()
    holder = lease.holder(home.lease)
    if holder is None or (run and holder.chain != run):
        console.print(f"{run or 'Nothing'} does not train{f'; {holder.chain} does' if holder else ''}.", soft_wrap=True)
        return 0
    os.kill(holder.pid, signal.SIGTERM)
    deadline = time.monotonic() + LONGEST_END_S
    while lease.holder(home.lease) is not None or (home.path / "ray" / "head.json").exists():
        if time.monotonic() > deadline:
            console.print(f"{holder.chain} has not ended within {LONGEST_END_S:.0f} s: see {home.path / 'ray'}", style="red", soft_wrap=True)
            return 1
        time.sleep(0.5)
    console.print(f"{holder.chain} is stopped. What was saved is kept: `ratchet jobs resume` goes on from there.", soft_wrap=True)
    return 0


def resume(profile: str | None, console: Console) -> int:
    """Goes on with the open chain; says so where there is none."""
    home = Home.from_environment()
    if not any(record.kind == "chain" and record.state == "open" for record in records(home.runs)):
        console.print("No run is open: all have been decided. `ratchet train` starts the next.")
        return 0
    return demo(profile, console)


def watch(run: str | None, console: Console) -> int:
    """A live table of a run that another process works on, until it ends or Ctrl-C."""
    home, record, folder = _found(run)
    chain = Chain(folder.parent.parent)
    view = View(chain.folder, f"{record.id} · profile {' '.join([record.profile, *record.changes])}", from_start=True)
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
    console.print(f"{record.id}: {_state(home, chain.record)}")
    return 0


def show_samples(run: str | None, step: int | None, worst: bool, best: bool, count: int, console: Console) -> int:
    """Answers of a training step with verdict and reward trace, in the order of the batch, or by reward."""
    _, record, folder = _found(run)
    there = samples.steps(folder)
    chosen = step if step is not None else there[-1] if there else 0
    found = samples.read(folder, chosen)
    if worst or best:
        found.sort(key=lambda sample: (sample.reward, sample.problem_id), reverse=best)
    verdicts = {verdict: sum(sample.verdict == verdict for sample in found) for verdict in sorted({sample.verdict for sample in found})}
    console.print(f"{record.id}, step {chosen}: {len(found)} answers, {', '.join(f'{count} {verdict}' for verdict, count in verdicts.items())}")
    for sample in found[:count]:
        trace = ", ".join(f"{name} {value:+.2f}" for name, value in sample.trace.items())
        console.rule(f"{sample.problem_id}  [bold]{sample.verdict}[/]  reward {sample.reward:+.2f} ({trace})", align="left", style="dim")
        console.print(Syntax(sample.answer, "python", background_color="default", word_wrap=True))
    return 0


def _found(run: str | None) -> tuple[Home, Record, Path]:
    """Home, record and newest training folder of the run, the newest run where none is named. Raises FileNotFoundError with the runs there are."""
    home = Home.from_environment()
    trained = [record for record in records(home.runs) if _training(home, record.id)]
    chosen = next((record for record in reversed(trained) if run in (None, record.id)), None)
    if chosen is None or (folder := _training(home, chosen.id)) is None:
        there = ", ".join(record.id for record in trained) or "none yet: `ratchet train` starts one"
        raise FileNotFoundError(f"no training {run or ''} in {home.path}: there are {there}")
    return home, chosen, folder


def _training(home: Home, run: str) -> Path | None:
    """The newest job's folder of a run."""
    jobs = sorted((home.runs / run / "training").glob("*/job.json"), key=lambda path: path.stat().st_mtime)
    return jobs[-1].parent if jobs else None


def _state(home: Home, record: Record) -> str:
    holder = lease.holder(home.lease)
    if holder and holder.chain == record.id:
        return "trains"
    ends = {"open": "interrupted", "failed": "given up", "done": "decided"}
    return {"promote": "promoted", "refuse": "not promoted", "install": "installed"}.get(record.decision, ends[record.state])


def _last(rows: list[dict[str, object]], key: str, form: str) -> str:
    found = [row[key] for row in rows if key in row]
    return format(float(str(found[-1])), form) if found else ""
