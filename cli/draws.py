"""Show the problems of each training step, with expected and measured pass rates."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from cli.app.commands import Command
from cli.app.options import JsonOption, RunArgument
from cli.display.screen import print_json, screen
from cli.lookup.damage import Damage
from cli.lookup.runs import folder_of, numbers_table
from resources.home import Home
from resources.settings import Settings
from verl_jobs import samples
from verl_jobs.curriculum import draws
from verl_jobs.curriculum.draws import Draw
from verl_jobs.job import TrainingJob


def show_draws(
    run: str | None, step: int | None, home: Home, console: Console, *, as_json: bool = False
) -> int:
    """Print one line a step, or the problems of one step, sorted by the difference between measured
    and expected pass rate. as_json: the problems of this step, or of each. Return 2 if a step's
    file is damaged, else 0.
    """
    folder, damage = folder_of(run, home), Damage()
    if as_json:
        steps = {}
        for each in samples.steps(folder) if step is None else [step]:
            with damage.collected():
                steps[each] = [asdict(draw) for draw in draws.read(folder, each)]
        print_json(steps)
        return damage.exit_code()
    schedule = "unknown"
    with damage.collected():
        schedule = TrainingJob.read(folder / "job.json").training.curriculum.schedule
    console.print(f"{folder.parents[1].name}, curriculum {schedule}", highlight=False)
    console.print(
        _steps_table(folder, damage) if step is None else _problems_table(draws.read(folder, step)),
        highlight=False,
    )
    return damage.exit_code()


def _steps_table(folder: Path, damage: Damage) -> Table:
    table = numbers_table("step", "problems", "new", "expected", "passed", "some passed")
    known: set[str] = set()
    for step in samples.steps(folder):
        step_draws = []
        with damage.collected():
            step_draws = draws.read(folder, step)
        if not step_draws:
            continue
        ids = {draw.problem_id for draw in step_draws}
        expected = [draw.expected for draw in step_draws if draw.expected is not None]
        table.add_row(
            str(step),
            str(len(step_draws)),
            str(len(ids - known)),
            f"{fmean(expected):.0%}" if expected else "",
            f"{fmean(draw.pass_rate for draw in step_draws):.0%}",
            f"{fmean(0 < draw.passed < draw.n for draw in step_draws):.0%}",
        )
        known |= ids
    return table


def _problems_table(step_draws: list[Draw]) -> Table:
    table = numbers_table("problem", "expected", "passed")
    for draw in sorted(
        step_draws,
        key=lambda draw: (-abs(draw.pass_rate - (draw.expected or 0.0)), draw.problem_id),
    ):
        table.add_row(
            draw.problem_id,
            "" if draw.expected is None else f"{draw.expected:.0%}",
            f"{draw.passed} of {draw.n}",
        )
    return table


def command(
    run: RunArgument = None,
    step: Annotated[
        int | None,
        typer.Option(help="Show the problems of this training step. Default: one line a step."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the problems of each training step, with expected and measured pass rates."""
    raise typer.Exit(show_draws(run, step, Settings.read().home, screen(), as_json=as_json))


COMMAND = Command("Train", command)
