"""Stop, resume and watch a training."""

from __future__ import annotations

import os
import shlex
import signal
import time

from rich.console import Console
from rich.live import Live

from cli.runs import find_run, run_state
from pipelines.launch import INTERRUPTED, Sampler, demo
from pipelines.watch.view import View
from resources import lease
from resources.home import Home
from resources.run_record import PipelineRun, records
from resources.settings import Settings

LONGEST_END_S = 120.0  # the training saves, Ray notices that nobody holds it any more


def stop(run: str | None, home: Home, console: Console) -> int:
    """Stop the running training; its checkpoints stay. Returns 0 when all of it has ended, 1 if it
    has not within a minute.
    """
    holder = lease.holder(home.lease)
    if run and not (home.runs / run).is_dir():
        raise FileNotFoundError(
            f"no run {run} in {home.path}: there are "
            f"{', '.join(record.id for record in records(home.runs)) or 'none yet'}"
        )
    if holder is None or (run and holder.chain != run):
        console.print(
            f"{f'{run} does not train' if run else 'No training runs'}{f'; {holder.chain} does' if holder else ''}.",  # noqa: E501
            soft_wrap=True,
        )
        return 0
    os.kill(holder.pid, signal.SIGTERM)
    deadline = time.monotonic() + LONGEST_END_S
    while lease.holder(home.lease) is not None or (home.path / "ray" / "head.json").exists():
        if time.monotonic() > deadline:
            console.print(
                (
                    f"{holder.chain} has not ended within {LONGEST_END_S:.0f} s: see "
                    f"{home.path / 'ray'}"
                ),
                style="red",
                soft_wrap=True,
            )
            return 1
        time.sleep(0.5)
    console.print(
        (
            f"{holder.chain} is stopped. What was saved is kept: "
            f"`{_going_on(home, holder.chain)}` goes on from there."
        ),
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


def resume(settings: Settings, console: Console) -> int:
    """Goes on with the open chain; says so where there is none, and what goes on with a study."""
    home = settings.home
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
    return demo(settings, console)


def watch(run: str | None, home: Home, console: Console) -> int:
    """A live table of a run that another process works on, until it ends or Ctrl-C."""
    if (
        (holder := lease.holder(home.lease))
        and run in (None, holder.chain)
        and (home.runs / holder.chain).is_dir()
    ):  # also before it trains
        pipeline_run = PipelineRun(home.runs / holder.chain)
        record = pipeline_run.record
    else:
        record, folder = find_run(run, home)
        pipeline_run = PipelineRun(folder.parent.parent)
    view = View(
        pipeline_run.folder,
        f"{record.id} · profile {' '.join([record.profile, *record.changes])}",
        from_start=True,
    )
    sampler = Sampler(pipeline_run, counts=False)
    with Live(view, console=console, refresh_per_second=4, transient=False):
        try:
            while (holder := lease.holder(home.lease)) and holder.chain == record.id:
                view.follow()
                sampler.sample(view)
                time.sleep(0.5)
            view.follow()
        except KeyboardInterrupt:
            return INTERRUPTED
    if not console.is_terminal:  # there the picture's last line is not ended
        console.line()
    console.print(f"{record.id}: {run_state(home, pipeline_run.record)}")
    return 0
