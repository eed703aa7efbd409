"""The figures of a scorecard: pass@k by set of tests, the same without suspect tasks, verdicts by
kind, cost.

In: a scorecard, the datasets' lists of suspect tasks, a price. Out: scores for a table, and all
figures as plain JSON for the head of its file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.promotion.rate import Incomparable, Rate, clusters_of, counts_of, points
from evaluation.reports.cost import Price, Usage
from evaluation.scorecard import Scorecard
from rewards.accounting import Accounting

KS = (1, 10, 100)
# By source or benchmark: ids of tasks that resemble training data.
Suspects = Mapping[str, Collection[str]]


@dataclass(frozen=True)
class PlottedScore:
    """Scores by one set of tests. `lacking`: k -> why there is no estimate."""

    name: str
    tasks: int
    at: dict[int, Rate]
    lacking: dict[int, str]


def scores(
    card: Scorecard, ks: Sequence[int] = (), without: Collection[str] = ()
) -> list[PlottedScore]:
    """Return a score for each set of tests. ks: by default those of KS that the completions allow.
    Raises Incomparable if nothing is left to score.
    """
    score_list = []
    for name in card.tests or ("",):
        counts = {
            task: count for task, count in counts_of(card, name).items() if task not in without
        }
        if not counts:
            raise Incomparable(f"{card.benchmark}: no task is left")
        fewest = min(counts, key=lambda task: counts[task][1])
        most = counts[fewest][1]
        allowed = [k for k in ks or KS if k <= most]
        at = Rate.at(counts, allowed, clusters_of(card)) if allowed else {}
        score_list.append(
            PlottedScore(
                name or "all",
                len(counts),
                at,
                {k: f"no estimate: {fewest} has {most} samples" for k in ks if k > most},
            )
        )
    return score_list


def suspects_in(card: Scorecard, lists: Suspects) -> frozenset[str] | None:
    """Return the card's tasks that the contamination report names; None if no report covers this
    benchmark.
    """
    source = card.source or card.benchmark
    if (listed := lists.get(source)) is None:
        return None
    named = set(listed)
    return frozenset(
        task
        for task in card.first
        if named & {task, f"{source}/{task}", f"{source}/{task.rpartition('/')[2]}"}
    )


def clean_rate(card: Scorecard, lists: Suspects) -> tuple[Rate | None, int] | None:
    """Return pass@1 without suspect tasks, and their number. No rate if every task is suspect; None
    if no report covers the benchmark.
    """
    if (suspect := suspects_in(card, lists)) is None:
        return None
    counts = {task: count for task, count in counts_of(card).items() if task not in suspect}
    return Rate.over(counts, 1, clusters_of(card)) if counts else None, len(suspect)


def clean_text(card: Scorecard, lists: Suspects) -> str:
    """Return the clean score for a table cell; "" if no report covers the benchmark."""
    if (clean := clean_rate(card, lists)) is None:
        return ""
    rate, suspects = clean
    if not suspects:
        return "no task is suspect"
    return (
        f"{points(rate.share)} % without {suspects}"
        if rate
        else f"all {suspects} tasks are suspect"
    )


@dataclass(frozen=True)
class Figures:
    """The figures of a scorecard.

    `clean`: the scores without suspect tasks; None if no report covers the benchmark, empty if no
    task is left.
    """

    card: Scorecard
    full: list[PlottedScore]
    suspect: frozenset[str] | None
    clean: list[PlottedScore] | None
    usage: Usage
    price: Price

    @classmethod
    def of(
        cls,
        card: Scorecard,
        ks: Sequence[int] = (),
        lists: Suspects | None = None,
        price: Price | None = None,
    ) -> Figures:
        suspect, full = suspects_in(card, lists or {}), scores(card, ks)
        clean = (
            None
            if suspect is None
            else full
            if not suspect
            else scores(card, ks, suspect)
            if card.first.keys() - suspect
            else []
        )
        return cls(card, full, suspect, clean, Usage.of(card), price or Price())

    @property
    def per_solved_problem(self) -> str:
        """Return the usage and cost of a solved problem in words; "" if not measured."""
        return (
            self.usage.per_solved_problem(self.price)
            if self.usage.tokens or self.usage.seconds
            else ""
        )

    @property
    def accounting(self) -> Accounting:
        """Return the counts of tasks. masked: those that this machine cannot judge."""
        card = self.card
        failed = {sample.task_id for sample in card.samples if sample.verdict == "INFRA"}
        masked = len(card.unmeasured) + len(failed)
        return Accounting(len(card.first) - len(failed), masked, 0, len(card.partial))

    def as_json(self) -> dict[str, Any]:
        clean = (
            None
            if self.suspect is None
            else {"left_out": sorted(self.suspect), "scores": _scores_json(self.clean or ())}
        )
        usage = {
            "tokens": self.usage.tokens or None,
            "seconds": self.usage.seconds or None,
            "cost": self.usage.cost(self.price),
        }
        return {
            "tasks": len(self.card.first),
            "samples": len(self.card.samples),
            "accounting": self.accounting.as_json(),
            "scores": _scores_json(self.full),
            "clean": clean,
            "verdicts": verdicts(self.card),
            "cut": self.card.cut,
            "spent": usage | {"a solved problem": self.per_solved_problem or None},
        }


def verdicts(card: Scorecard) -> dict[str, int]:
    """Return verdict -> number of completions."""
    return dict(sorted(Counter(sample.verdict for sample in card.samples).items()))


def _scores_json(score_list: Sequence[PlottedScore]) -> dict[str, Any]:
    return {
        each.name: {
            f"pass@{k}": {"value": rate.share, "low": rate.low, "high": rate.high}
            for k, rate in each.at.items()
        }
        | {f"pass@{k}": {"value": None, "why": why} for k, why in each.lacking.items()}
        for each in score_list
    }
