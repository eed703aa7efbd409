"""Print a comparison of models: its rows as a table, and its limits in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console

from cli.display.wide_table import print_wide
from evaluation.promotion.comparison import count, p_text, signed
from evaluation.promotion.rate import counts_of, points
from evaluation.reports.compare_models import ComparedModel, ComparedTests, harness_of
from evaluation.scorecard import Scorecard


def print_rows(rows: Sequence[ComparedTests], score: str, alpha: float, console: Console) -> None:
    """Print the rows. score: the heading of the scores."""
    print_wide([_cells(row, score, alpha) for row in rows], console)


def _cells(row: ComparedTests, score: str, alpha: float) -> dict[str, str]:
    runs = "" if row.runs == (1, 1) else f" ({row.runs[0]} and {row.runs[1]} runs)"
    return {
        "benchmark": row.benchmark,
        "tasks": f"{row.tasks}{runs}",
        "first": row.first,
        "other": row.other,
        score: f"{points(row.before)} → {points(row.after)} %",
        "difference (95 %)": f"{signed(row.difference)} ({signed(row.low)} to {signed(row.high)})",
        "won, lost": f"{row.won}, {row.lost}",
        "p": _p(row.p),
        "p (Holm)": _p(row.p_holm),
        "verdict": row.verdict(alpha),
        "detects gains of": f"{points(row.smallest_gain)}" if row.smallest_gain is not None else "",
        "tasks needed": f"{row.tasks_needed:,}" if row.tasks_needed is not None else "",
    }


def _p(value: float) -> str:
    return p_text(value).removeprefix("p ").removeprefix("= ")


def notes(rows: Sequence[ComparedTests], alpha: float, power: float) -> Iterator[str]:
    """Yield explanations of the columns, and the scores without suspect tasks."""
    if len(rows) > 1:
        yield (
            f"{len(rows)} tests with Holm's correction: the probability of any false verdict is at "
            f"most {alpha:g}."
        )
    yield from dict.fromkeys(f"Test: {row.test}." for row in rows)
    if any(row.smallest_gain is not None for row in rows):
        yield (
            "Detects gains of: the true difference, in points, that these tasks show with power "
            f"{power:g} (two-sided, {alpha:g}, uncorrected)."
        )
    if any(row.tasks_needed is not None for row in rows):
        yield "Tasks needed: number of tasks that show a difference of the measured size, likewise."
    for row in rows:
        if row.clean and row.clean.before and row.clean.after:
            yield (
                f"{row.benchmark} without the {count(row.clean.left_out)} that resemble "
                f"training data: {row.first} {row.clean.before}, {row.other} {row.clean.after}."
            )


def differences(rows: Sequence[ComparedTests]) -> Iterator[str]:
    """Yield what besides the models differs between the two sides, for the head of the results."""
    for row in rows:
        sides = {"HARNESS": row.harnesses, "PROMPTS": [each[:12] for each in row.prompts]}
        for name, (first, other) in sides.items():
            if first != other:
                yield (
                    f"OTHER {name}: {row.benchmark}: {row.first} with {first or 'unknown'}, "
                    f"{row.other} with {other or 'unknown'}; a difference may come from that."
                )


def limits(contestants: Sequence[ComparedModel]) -> Iterator[str]:
    """Yield the harnesses and prompts of the scores, missing tasks, and unequal numbers of
    completions.
    """
    yield from dict.fromkeys(
        f"Score of {name}: {harness_of(card)}; prompts {card.prompts_hash[:12] or 'unknown'}."
        for contestant in contestants
        for name, cards in contestant.cards.items()
        for card in cards
    )
    for contestant in contestants:
        for name, cards in contestant.cards.items():
            for card in cards:
                if card.partial:
                    yield (
                        f"PARTIAL: {count(len(card.partial))} of {name} without a completion of "
                        f"{contestant.name}; the others are compared."
                    )
                if card.unmeasured:
                    task, why = next(iter(card.unmeasured.items()))
                    yield (
                        f"LEFT OUT: {count(len(card.unmeasured))} of {name} without a score of "
                        f"{contestant.name} (first {task}: {why})."
                    )
    yield from _unequal(contestants)


def _unequal(contestants: Sequence[ComparedModel]) -> Iterator[str]:
    for name in dict.fromkeys(name for contestant in contestants for name in contestant.cards):
        counts = {
            contestant.name: _range([n for card in cards for n in _completions_per_task(card)])
            for contestant in contestants
            if (cards := contestant.cards.get(name))
        }
        if len({*counts.values()}) > 1 or any("to" in each for each in counts.values()):
            each = ", ".join(f"{model} {n}" for model, n in counts.items())
            yield (
                f"UNEQUAL n: completions per task of {name}: {each}; a task's score is the mean of "
                "its completions."
            )


def _completions_per_task(card: Scorecard) -> list[int]:
    return [n for _, n in counts_of(card).values()]


def _range(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low} to {high}"
