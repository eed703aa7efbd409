"""The results of an ablation: a table with intervals, a plot, and what so few runs can show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from artifacts.hashing import hash_data
from assets.markdown import markdown
from evaluation.promotion.comparison import signed
from evaluation.promotion.rate import points
from evaluation.reports.ablation import Contribution
from evaluation.reports.plots import contributions
from experiments.study import Study, write_report

COLUMNS = ("change", "pass@1, baseline", "changed", "contribution, points", "interval", "result")


def report(
    by_change: dict[str, Contribution], failed: dict[str, str], study: Study, seeds: int
) -> Path:
    """Write table, plot and figures under the home's reports. Return the page's path."""
    training = study.profile.training.model_dump(mode="json")
    identity = {"changes": sorted(by_change), "seeds": seeds, "training": training}
    name = f"ablation-{hash_data(identity)[:8]}"
    study.reports.mkdir(parents=True, exist_ok=True)
    (study.reports / f"{name}.svg").write_text(
        contributions(
            [(change, each.difference, each.interval) for change, each in by_change.items()]
        )
    )
    lines = [*(f"{run} failed: {why}" for run, why in failed.items()), *limits(by_change)]
    bullets = "\n".join(f"- {line}" for line in lines)
    text = (
        f"# Ablation of {study.id}\n\n{markdown(COLUMNS, rows(by_change))}\n\n{bullets}\n\n"
        f"![contributions]({name}.svg)\n"
    )
    facts: dict[str, Any] = {
        change: each._asdict() | {"shown": each.significant} for change, each in by_change.items()
    }
    return write_report(
        study.reports,
        name,
        {"changes": facts, "failed": failed, "limits": limits(by_change), "training": training},
        text,
    )


def rows(by_change: dict[str, Contribution]) -> list[tuple[str, ...]]:
    return [
        (
            change,
            f"{points(each.baseline)} %",
            f"{points(each.changed)} %",
            signed(each.difference),
            f"{signed(each.interval.low)} to {signed(each.interval.high)}"
            if each.interval
            else "no task differs",
            conclusion(each),
        )
        for change, each in by_change.items()
    ]


def conclusion(contribution: Contribution) -> str:
    if not contribution.significant:
        return "not shown"
    return "the baseline's setting helps" if contribution.difference > 0 else "the change helps"


def limits(by_change: dict[str, Contribution]) -> list[str]:
    """Return sentences that say what so few runs can and cannot show."""
    each = next(iter(by_change.values()))
    fewest = min(one.seeds for one in by_change.values())
    lines = [
        (
            f"Each run's checkpoint with the best validation, scored on {each.tasks} held-out "
            "tasks that no gate uses. The contribution is baseline minus changed."
        ),
        (
            f"The intervals of {len(by_change)} change{'s' if len(by_change) > 1 else ''} hold "
            "simultaneously with 95 % confidence (Bonferroni)."
        ),
    ]
    if fewest == 1:
        lines.append(
            "One seed: the interval covers the choice of tasks alone. Another seed may reverse "
            "the sign: use --seeds 3 or more before you rely on it."
        )
    else:
        lines.append(
            f"{fewest} seeds: the bootstrap resamples tasks and seeds together. Student's t widens "
            "the spread of so few seeds."
        )
    return lines


def show(by_change: dict[str, Contribution], page: Path, console: Console) -> None:
    table = Table(*COLUMNS, box=None, header_style="dim")
    for row in rows(by_change):
        table.add_row(*row)
    console.print(table)
    for line in limits(by_change):
        console.print(line, soft_wrap=True, highlight=False)
    console.print(f"Report: {page}", soft_wrap=True, highlight=False)
