"""Scorecards as a person looks at them: scores with what they cost, failures by kind, how the programs read. Markdown, for Dagster's pages."""

from __future__ import annotations

from collections.abc import Sequence

from assets.tables import markdown
from evaluation.cost import Price, Spent
from evaluation.quality import HEAD, trend
from evaluation.scorecard import Scorecard
from evaluation.taxonomy import rows

Sides = Sequence[tuple[str, dict[str, Scorecard]]]


def scores_table(sides: Sides, not_measured: dict[str, str], price: Price) -> str:
    """A row a scorecard; the share cut by length and what a solved problem took stand beside the score."""
    scored = [
        (who, name, f"{100 * card.pass_at_1:.1f} %", interval(card), len(card.solved), f"{100 * card.cut:.1f} %", Spent.of(card).a_problem(price))
        for who, cards in sides
        for name, card in cards.items()
    ]
    missing = [("", name, "not measured", reason, "", "", "") for name, reason in not_measured.items()]
    return markdown(("who", "benchmark", "pass@1", "95 % interval", "tasks", "cut by length", "a solved problem took"), [*scored, *missing])


def failures_table(sides: Sides) -> str:
    """Why answers failed, by who and benchmark; `ratchet failures` shows each."""
    found = [
        (who, name, of, words, count, f"{100 * count / len(card.samples):.1f} %", which)
        for who, cards in sides
        for name, card in cards.items()
        for of, words, count, which in rows(card)
    ]
    return markdown(("who", "benchmark", "kind", "in words", "answers", "of all", "which"), found) if found else "no answer fails"


def quality_table(cards: Sequence[Scorecard]) -> str:
    """How the programs read that pass, a row a scorecard."""
    return markdown(HEAD, trend(cards)) if cards else "no scores yet"


def interval(card: Scorecard) -> str:
    low, high = card.interval
    return f"{100 * low:.1f} to {100 * high:.1f} %"
