"""Show what runs cost, and the sums of a month."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.table import Table

from cli.app.commands import Command
from cli.app.options import JsonOption, ProfileOption
from cli.display.screen import print_json, screen
from resources.cost import RunCost, Total, costs, month_of
from resources.settings import Settings


def command(
    month: Annotated[str, typer.Option(help="A month, as 2026-11. Default: the present one.")] = "",
    as_json: JsonOption = False,
    profile: ProfileOption = None,
) -> None:
    """Show what each run of a month cost by the prices of the profile, and the sums.

    Hours are those in which a stage worked, also before it failed or was killed.
    """
    now = datetime.now(UTC)
    try:
        day = datetime.strptime(month, "%Y-%m").replace(tzinfo=UTC) if month else now
    except ValueError as error:
        raise typer.BadParameter(f"{month!r} is no month: give it as 2026-11") from error
    settings = Settings.read(profile)
    runs = costs(settings, now, month_of(day))
    total, cost = Total.of(runs), settings.profile.cost
    budget = cost.budget
    if as_json:
        print_json({"runs": list(map(asdict, runs)), "total": asdict(total), "budget": budget})
        return
    table = Table(box=None, pad_edge=False)
    for name in ("run", "hours", "GPU h", "core h", "GiB h", "cost", "a solved problem", "a point"):
        table.add_column(name, justify="left" if name == "run" else "right")
    for run in runs:
        table.add_row(run.run, *_cells(run, Total.of([run])))
    table.add_row(f"{day:%Y-%m}", *_cells(total, total))
    screen().print(table)
    prices = (cost.gpu_hour, cost.cpu_hour, cost.gib_hour, cost.gib_month)
    if not any((settings.profile.price_per_hour, *prices)):
        print(
            f"the profile {settings.reference} has no prices: set `price_per_hour` and `cost` there"
        )
    if budget:
        print(f"budget {budget:g}, spent {100 * total.price / budget:.0f} %")


def _cells(row: RunCost | Total, total: Total) -> list[str]:
    usage = row.usage
    hours = (usage.hours, usage.gpu, usage.cpu, usage.memory)
    prices: list[Any] = [row.price or None, total.per_solved or None, total.per_point or None]
    return [f"{each:.2f}" for each in hours] + [
        "" if each is None else f"{each:.4g}" for each in prices
    ]


COMMAND = Command("Run", command)
