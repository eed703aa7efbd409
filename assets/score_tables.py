"""Scorecards as Markdown tables for Dagster: scores with cost, failure kinds, program quality."""

from __future__ import annotations

from collections.abc import Sequence

from assets.markdown import markdown
from evaluation.judging.failure_kinds import rows
from evaluation.judging.quality import HEAD, trend
from evaluation.promotion.rate import Rate, points
from evaluation.reports.cost import Price, Usage
from evaluation.reports.figures import Suspects, clean_text
from evaluation.scorecard import Scorecard

FULL_AND_CLEAN = ("pass@1", "95 % interval", "clean")
Sides = Sequence[tuple[str, dict[str, Scorecard]]]


def scores_table(sides: Sides, suspects: Suspects, price: Price) -> str:
    """Return a table with a row per scorecard.

    Columns include the score without suspect tasks, the share of truncated completions, and the
    cost of a solved problem.
    """
    scored = [
        (
            side,
            name,
            *full_and_clean(card, suspects),
            len(card.first),
            f"{100 * card.cut:.1f} %",
            Usage.of(card).per_solved_problem(price),
        )
        for side, cards in sides
        for name, card in cards.items()
    ]
    return markdown(
        ("model", "benchmark", *FULL_AND_CLEAN, "tasks", "truncated", "cost of a solved problem"),
        scored,
    )


def failures_table(sides: Sides) -> str:
    """Return a table of failures by contestant, benchmark and kind.

    `ratchet failures` shows the completions.
    """
    table_rows = [
        (side, name, kind, description, count, f"{100 * count / len(card.samples):.1f} %", tasks)
        for side, cards in sides
        for name, card in cards.items()
        for kind, description, count, tasks in rows(card)
    ]
    return (
        markdown(
            ("model", "benchmark", "kind", "description", "completions", "share", "tasks"),
            table_rows,
        )
        if table_rows
        else "no completion fails"
    )


def quality_table(cards: Sequence[Scorecard]) -> str:
    """Return a table of the quality of passing programs, with a row per scorecard."""
    return markdown(HEAD, trend(cards)) if cards else "no scores yet"


def full_and_clean(card: Scorecard, suspects: Suspects) -> tuple[str, str, str]:
    """Return the cells for the columns FULL_AND_CLEAN.

    The last is empty if no contamination report covers the benchmark.
    """
    rate = Rate.of(card)
    return (
        f"{points(rate.share)} %",
        f"{points(rate.low)} to {points(rate.high)} %",
        clean_text(card, suspects),
    )
