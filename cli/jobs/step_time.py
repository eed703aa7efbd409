"""`ratchet jobs profile`: one page on where a training step's time goes."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from verl_jobs.config.overrides import TRACES
from verl_jobs.job import metrics
from verl_jobs.metrics.step_time import Duration, operations, phases, tasks

LONGEST = 8


def show_step_time(run: str, folder: Path, console: Console) -> int:
    """Exits 0, or 1 where no step has ended yet."""
    durations, whole = phases(metrics(folder))
    if not durations:
        console.print(f"{run}: no step has ended yet")
        return 1
    console.print(f"[bold]{run}[/], median step {whole:.2f} s", highlight=False)
    table = _table("phase", "s a step", "of a step", "steps")
    for spent in durations:
        table.add_row(
            spent.name,
            f"{spent.seconds:.2f}",
            f"{spent.seconds / whole:.0%} {'▪' * round(20 * spent.seconds / whole)}",
            str(spent.times),
        )
    console.print(table)
    traced, timeline = operations(folder), tasks(folder)
    if not traced:
        console.print(
            "No step was traced: --set training.trace=[3] traces the third of a new training.",
            style="dim",
        )
        return 0
    _print(console, "operation, rank 0, the traced steps", traced)
    if timeline:
        _print(console, "Ray task, the whole run, waiting counted", timeline)
    console.print(
        f"The traces, for ui.perfetto.dev: {folder / TRACES}",
        style="dim",
        soft_wrap=True,
        highlight=False,
    )
    return 0


def _print(console: Console, name: str, durations: list[Duration]) -> None:
    together = sum(spent.seconds for spent in durations)
    table = _table(name, "s", "of all", "calls")
    for spent in durations[:LONGEST]:
        table.add_row(
            spent.name[:60],
            f"{spent.seconds:.2f}",
            f"{spent.seconds / together:.0%}",
            f"{spent.times:,}",
        )
    console.print()
    console.print(table)


def _table(*names: str) -> Table:
    table = Table(box=None, header_style="dim")
    for name in names:
        table.add_column(
            name,
            justify="left" if name == names[0] or name.startswith("of") else "right",
            no_wrap=True,
        )
    return table
