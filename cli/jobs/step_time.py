"""`ratchet jobs profile`: show where the time of a training step goes."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from pipelines.watch.text import print_text
from verl_jobs.config.overrides import TRACES
from verl_jobs.job import check_metrics, metrics
from verl_jobs.metrics.step_time import phases


def show_step_time(run: str, folder: Path, console: Console) -> int:
    """Print the phases with their times. Return 1 before the first step.

    Raises CorruptArtifact for damaged metrics.
    """
    check_metrics(folder)
    durations, step_s = phases(metrics(folder))
    if not durations:
        console.print(f"{run}: no step has finished yet")
        return 1
    console.print(f"[bold]{run}[/], median step {step_s:.2f} s", highlight=False)
    table = _table("phase", "s a step", "share of all steps", "steps")
    for duration in durations:
        share = duration.share
        bar = "between steps" if share is None else f"{share:.0%} {'▪' * round(20 * share)}"
        table.add_row(duration.name, f"{duration.seconds:.2f}", bar, str(duration.times))
    console.print(table)
    traces = folder / TRACES
    print_text(
        console,
        f"Traces, for ui.perfetto.dev: {traces}"
        if traces.is_dir()
        else "No step was traced: --set training.trace=[3] traces step 3 of a new training.",
        style="dim",
    )
    return 0


def _table(*names: str) -> Table:
    table = Table(box=None, header_style="dim")
    for name in names:
        table.add_column(
            name,
            justify="left" if name == names[0] or name.startswith("share") else "right",
            no_wrap=True,
        )
    return table
