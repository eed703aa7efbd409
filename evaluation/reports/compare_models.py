"""Compare any models: each with the first, on every benchmark that both were evaluated on, all
tests corrected together.

In: for each contestant its scorecards, one for each run (a training seed). Out: a `ComparedTests`
for each benchmark and contestant, with Holm's correction over all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import ceil
from typing import Any, NamedTuple

from evaluation.promotion.comparison import (
    CleanScore,
    Comparison,
    announced_gain,
    check_comparable,
    clean_score,
    compare,
    count,
)
from evaluation.promotion.method_names import name_of_test
from evaluation.promotion.policy import Policy
from evaluation.promotion.rate import (
    Incomparable,
    Plain,
    Rate,
    clusters_in,
    clusters_of,
    counts_of,
    points,
    values_of,
)
from evaluation.reports.figures import Suspects, suspects_in
from evaluation.scorecard import Scorecard
from evaluation.statistics.hypothesis_tests import tasks_to_show
from evaluation.statistics.paired import holm
from evaluation.statistics.seeds import compare_recipes


class ComparedModel(NamedTuple):
    """A model, or a recipe with several runs. `cards`: by benchmark, one scorecard for each run."""

    name: str
    cards: Mapping[str, tuple[Scorecard, ...]]


class ComparedTests(Plain):
    """One contestant against the first on one benchmark."""

    benchmark: str
    benchmark_version: str
    tasks: int
    first: str
    other: str
    runs: tuple[int, int]
    before: float
    after: float
    difference: float
    low: float
    high: float
    p: float  # two-sided
    p_holm: float
    won: int
    lost: int
    # Smallest true difference that these tasks show with the target power, two-sided at alpha.
    smallest_gain: float | None
    # Tasks that show a true difference of the measured size with the target power; None for 0.
    tasks_needed: int | None
    clean: CleanScore | None
    test: str  # name of the test
    # Of each side, where the runs agree and it is known: tool and version, hash of all prompts.
    harnesses: tuple[str, str]
    prompts: tuple[str, str]

    def verdict(self, alpha: float) -> str:
        if self.p_holm <= alpha:
            return f"{self.other if self.difference > 0 else self.first} is better"
        return (
            "no difference shown" if self.p > alpha else "no difference shown among so many tests"
        )


def compare_models(
    contestants: Sequence[ComparedModel],
    *,
    k: int = 1,
    alpha: float = 0.05,
    target_power: float = 0.8,
    suspects: Suspects | None = None,
) -> list[ComparedTests]:
    """Compare. Tasks that one side could not measure are left out of both. Raises Incomparable if a
    contestant shares no benchmark with the first or has other tasks, ValueError for fewer than k
    samples.
    """
    first, rows = contestants[0], []
    for other in contestants[1:]:
        shared = [name for name in first.cards if name in other.cards]
        if not shared:
            names = "; ".join(
                f"{c.name}: {', '.join(c.cards) or 'nothing'}" for c in (first, other)
            )
            raise Incomparable(
                f"{first.name} and {other.name} share no benchmark ({names}): evaluate both "
                "on the same one"
            )
        rows += [
            _row(
                name,
                first,
                other,
                k=k,
                alpha=alpha,
                target_power=target_power,
                suspect=suspects_in(first.cards[name][0], suspects or {}) or (),
            )
            for name in shared
        ]
    adjusted = holm([row.p for row in rows])
    return [row.model_copy(update={"p_holm": p}) for row, p in zip(rows, adjusted, strict=True)]


def can_show(contestant: ComparedModel, *, k: int = 1, alpha: float = 0.05) -> list[str]:
    """Return in words the gain that each suite can show, before any comparison."""
    lines = []
    for name, cards in contestant.cards.items():
        gain, rate = announced_gain(cards[0], alpha, k), Rate.of(cards[0], k)
        can = (
            f"a true gain of {points(gain)} points is shown four times in five"
            if gain is not None
            else "too few tasks to show any gain"
        )
        lines.append(
            f"{name}: {contestant.name} solves {rate}; at {alpha:g}, one-sided, {can}, if "
            "half of the tasks are decided by the task alone."
        )
    return lines


def _row(
    benchmark: str,
    first: ComparedModel,
    other: ComparedModel,
    *,
    k: int,
    alpha: float,
    target_power: float,
    suspect: Collection[str],
) -> ComparedTests:
    old, new = _measured(first.cards[benchmark], other.cards[benchmark])
    for card in (*old[1:], *new):
        check_comparable(old[0], card)
    runs = len(old), len(new)
    if runs != (1, 1) and min(runs) < 2:
        raise Incomparable(
            f"{benchmark}: {count(runs[0], 'run')} of {first.name} against {runs[1]} of "
            f"{other.name}: give one of each, or at least two of each"
        )
    single = runs == (1, 1)
    figures = (
        _one_run(old[0], new[0], k, alpha / 2, target_power)
        if single
        else _several_runs(old, new, k)
    )
    return ComparedTests.model_validate(
        {
            "benchmark": benchmark,
            "benchmark_version": old[0].benchmark_version,
            "first": first.name,
            "other": other.name,
            "clean": clean_score(benchmark, old[0], new[0], suspect, k) if single else None,
            "p_holm": figures["p"],
            "harnesses": tuple(_all(harness_of(card) for card in cards) for cards in (old, new)),
            "prompts": tuple(_all(card.prompts_hash for card in cards) for cards in (old, new)),
        }
        | figures
    )


def harness_of(card: Scorecard) -> str:
    """Return the harness with its version; for another tool's log, with the score's name."""
    tool, score = card.tool, card.harness_version.removeprefix(card.tool)
    return f"{tool} {card.tool_version}".rstrip() + score if tool else card.harness_version


def _all(values: Iterable[str]) -> str:
    return " and ".join(dict.fromkeys(values))


def _measured(*runs: Sequence[Scorecard]) -> list[list[Scorecard]]:
    """Return the cards without the tasks that any of them could not measure."""
    unmeasured = {task for cards in runs for card in cards for task in card.unmeasured}
    return [[card.without(unmeasured) for card in cards] for cards in runs]


def _one_run(
    old: Scorecard, new: Scorecard, k: int, alpha: float, target_power: float
) -> dict[str, Any]:
    """alpha: one-sided."""
    c = compare(old, new, Policy(alpha=alpha, tags=()), k, target_power)
    return {
        "tasks": c.before.tasks,
        "runs": (1, 1),
        "before": c.before.share,
        "after": c.after.share,
        "difference": c.difference,
        "low": c.difference_low,
        "high": c.difference_high,
        "p": c.p_two_sided,
        "won": len(c.won),
        "lost": len(c.lost),
        "smallest_gain": c.smallest_gain,
        "test": name_of_test(c.model_dump()),
        "tasks_needed": _tasks_needed(c, alpha, target_power),
    }


def _tasks_needed(c: Comparison, alpha: float, target_power: float) -> int | None:
    gain, tasks = abs(c.difference), c.before.tasks
    if not gain:
        return None
    if c.test == "mcnemar":
        return tasks_to_show(gain, (len(c.won) + len(c.lost)) / tasks, alpha, target_power)
    # The error of a mean falls with the square root of the tasks.
    return ceil(tasks * (c.smallest_gain / gain) ** 2) if c.smallest_gain else None


def _several_runs(old: Sequence[Scorecard], new: Sequence[Scorecard], k: int) -> dict[str, Any]:
    """Compare the runs of two recipes. Won and lost: tasks whose mean over the runs differs."""
    ids = list(counts_of(old[0]))
    was, now = (
        [
            [values[task] for task in ids]
            for values in (values_of(counts_of(card), k) for card in cards)
        ]
        for cards in (old, new)
    )
    clusters = clusters_in(ids, clusters_of(*old, *new))
    comparison = compare_recipes(was, now, clusters)
    before, after = (sum(map(sum, runs)) / len(runs) / len(ids) for runs in (was, now))
    means = [
        (sum(column) / len(was), sum(other_column) / len(now))
        for column, other_column in zip(zip(*was, strict=True), zip(*now, strict=True), strict=True)
    ]
    return {
        "tasks": len(ids),
        "runs": comparison.runs,
        "before": before,
        "after": after,
        "difference": comparison.difference,
        "low": comparison.interval.low,
        "high": comparison.interval.high,
        "p": comparison.p_two_sided,
        "won": sum(b > a for a, b in means),
        "lost": sum(b < a for a, b in means),
        "smallest_gain": None,
        "test": f"bootstrap over runs and {'clusters of ' if clusters else ''}tasks",
        "tasks_needed": None,
    }
