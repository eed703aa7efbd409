"""Print the scores of `ratchet evaluate --benchmark`: a table of pass@k, then the details."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from evaluation.promotion.rate import points
from evaluation.reports.figures import Figures, PlottedScore, verdicts
from evaluation.scorecard import Scorecard
from pipelines.watch.text import print_text


def print_scores(figures: Figures, console: Console) -> None:
    card = figures.card
    table = Table(
        title=f"{f'{card.benchmark} {card.release}'.rstrip()}, {len(card.samples)} samples",
        title_justify="left",
    )
    for heading in ("tests", "score", "value", "95 % interval", "tasks"):
        table.add_column(heading, justify="right" if heading in ("value", "tasks") else "left")
    for score in figures.full:
        _add_rows(table, score, score.name)
    for score in figures.clean or () if figures.suspect else ():
        _add_rows(table, score, f"{score.name}, clean")
    console.print(table)
    print_text(console, "\n".join(_details(figures, card)))


def _add_rows(table: Table, score: PlottedScore, name: str) -> None:
    for k, rate in score.at.items():
        table.add_row(
            name,
            f"pass@{k}",
            f"{points(rate.share)} %",
            f"{points(rate.low)} to {points(rate.high)} %",
            str(score.tasks),
        )
    for k, why in score.lacking.items():
        table.add_row(name, f"pass@{k}", "", why, str(score.tasks))


def _details(figures: Figures, card: Scorecard) -> list[str]:
    counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts(card).items())
    lines = [f"verdicts: {counts}", f"truncated: {100 * card.cut:.1f} %"]
    lines.append(f"tasks: {figures.accounting}")
    if figures.per_solved_problem:
        lines.append(f"cost of a solved problem: {figures.per_solved_problem}")
    if figures.suspect is not None:
        lines.append(
            f"clean: without the {len(figures.suspect)} tasks that resemble this home's training "
            "data"
        )
    if card.unmeasured:
        tasks = sorted(card.unmeasured)
        lines.append(
            f"not measured: {len(tasks)} tasks ({_first_names(tasks)}); the first "
            f"{card.unmeasured[tasks[0]]}"
        )
    if card.partial:
        total = len(card.partial) + len(card.first) + len(card.unmeasured)
        lines.append(
            f"PARTIAL: {len(card.partial)} of {total} tasks have no completion "
            f"({_first_names(card.partial)})"
        )
    return lines


def _first_names(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
