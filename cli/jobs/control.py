"""Stop, resume and watch a training."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time

from rich.console import Console
from rich.live import Live

from cli.lookup.runs import find_run, run_state
from pipelines.launch import INTERRUPTED, ResourceSampler, demo
from pipelines.watch.text import print_text
from pipelines.watch.view import View
from resources import lease
from resources.home import Home, NotReady
from resources.run_context import PARTITION, TRAINING_TAGS
from resources.run_launcher import cancel_runs
from resources.run_record import PipelineRun, readable
from resources.settings import Settings

STOP_TIMEOUT_S = 120.0  # the training saves a checkpoint, then Ray ends


def stop(run: str | None, home: Home, console: Console) -> int:
    """Stop the running training for good, or one that Dagster is about to start: it is not started
    again. Its checkpoints stay. Return 0 when it has ended, 1 on a timeout.

    Raises FileNotFoundError for an unknown run.
    """
    holder = lease.holder(home.lease)
    if holder is None or (run and holder.run_id != run):
        tags = TRAINING_TAGS | ({PARTITION: run} if run else {})
        if stopped := cancel_runs(home.dagster, tags):
            names = sorted({each.tags.get(PARTITION, each.run_id[:8]) for each in stopped})
            print_text(console, f"{', '.join(names)} is stopped before its first stage.")
            return 0
    if run and not (home.runs / run).is_dir() and not PipelineRun(home.runs, run).stored:
        raise FileNotFoundError(
            f"no run {run} in {home.path}: known runs are "
            f"{', '.join(record.id for record in readable(home.runs)) or 'none yet'}"
        )
    if holder is None or (run and holder.run_id != run):
        state = f"{run} is not training" if run else "No training is running"
        other = f"; {holder.run_id} is" if holder else ""
        console.print(f"{state}{other}.", soft_wrap=True)
        return 0
    if not cancel_runs(home.dagster, {PARTITION: holder.run_id}):
        if not holder.here:
            raise NotReady(f"{holder}: stop it on {holder.host}")
        os.kill(holder.pid, signal.SIGTERM)  # a training that Dagster does not know
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while lease.holder(home.lease) is not None or (home.path / "ray" / "head.json").exists():
        if time.monotonic() > deadline:
            print(
                f"error: {holder.run_id} has not ended within {STOP_TIMEOUT_S:.0f} s: see "
                f"{home.path / 'ray'}",
                file=sys.stderr,
            )
            return 1
        time.sleep(0.5)
    console.print(
        f"{holder.run_id} is stopped; its checkpoints stay. "
        f"`{_resume_command(home, holder.run_id)}` resumes it.",
        soft_wrap=True,
    )
    return 0


def _resume_command(home: Home, run: str) -> str:
    """Return the command that resumes a run; for a study, the command that started it."""
    record = next((record for record in readable(home.runs) if record.id == run), None)
    if record is None:  # a training of a Reviewer has no record
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


def resume(settings: Settings, console: Console) -> int:
    """Resume the open pipeline run. Without one, name the commands that resume open studies."""
    home = settings.home
    open_runs = [record for record in readable(home.runs) if record.state == "open"]
    if not any(record.kind == "pipeline" for record in open_runs):
        console.print("No pipeline run is open. `ratchet train` starts the next.")
        for record in open_runs:
            if record.kind == "study":
                print_text(
                    console,
                    f"{record.id} is open: `{_resume_command(home, record.id)}` resumes it.",
                )
        return 0
    return demo(settings, console)


def watch(run: str | None, home: Home, console: Console) -> int:
    """Show the live view of a run of another process, until the run ends or Ctrl-C."""
    if (
        (holder := lease.holder(home.lease))
        and run in (None, holder.run_id)
        and (home.runs / holder.run_id).is_dir()
    ):  # it may not have a training folder yet
        pipeline_run = PipelineRun(home.runs, holder.run_id)
        record = pipeline_run.record
    else:
        record, folder = find_run(run, home)
        pipeline_run = PipelineRun(home.runs, folder.parents[1].name)
    view = View(
        pipeline_run.folder,
        f"{record.id} · profile {' '.join([record.profile, *record.changes])}",
        from_start=True,
    )
    view.began -= 60 * record.took_minutes
    view.peak_gib = record.peak_pss_gib
    sampler = ResourceSampler(pipeline_run, counts=False)
    with Live(view, console=console, refresh_per_second=4, transient=False):
        try:
            while (holder := lease.holder(home.lease)) and holder.run_id == record.id:
                view.follow()
                sampler.sample(view)
                time.sleep(0.5)
            view.follow()
        except KeyboardInterrupt:
            return INTERRUPTED
    if not console.is_terminal:  # rich leaves the last line without an end then
        console.line()
    console.print(f"{record.id}: {run_state(home, pipeline_run.record)}")
    return 0
