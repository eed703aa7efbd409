"""Regressions: a champion whose score fell on fresh tasks, and tasks that a later champion lost."""

from __future__ import annotations

from evaluation.promotion.comparison import p_text
from evaluation.promotion.rate import Incomparable, Plain, Rate, counts_of
from evaluation.scorecard import Scorecard
from evaluation.statistics.hypothesis_tests import fisher_fall


class Regression(Plain):
    """The champion's scores on two draws of tasks, and whether the fall is more than chance."""

    fell: bool
    p_value: float
    before: Rate
    after: Rate
    reason: str


def same_supply(before: Scorecard, after: Scorecard) -> bool:
    """Return whether the tasks of both cards are of the same supply: their ids have a common
    prefix.

    The ids of held-out tasks differ between the seeds of the family.
    """
    first, second = ({task.rpartition("/")[0] for task in card.solved} for card in (before, after))
    return not first.isdisjoint(second)


def regressed(before: Scorecard, after: Scorecard, alpha: float = 0.01) -> Regression:
    """Compare one checkpoint's scores on two draws of a benchmark: Fisher's exact test, because the
    tasks differ.

    A champion was selected for a good score, so a small fall on fresh tasks is expected: hence a
    strict alpha. Raises Incomparable if the cards belong to different checkpoints or benchmarks, or
    their tasks are not of the same supply.
    """
    if before.checkpoint_hash != after.checkpoint_hash:
        raise Incomparable(
            f"a regression is about one checkpoint, got {before.checkpoint} and "
            f"{after.checkpoint}: compare those with the gate"
        )
    if before.benchmark != after.benchmark:
        raise Incomparable(
            f"scores on {before.benchmark} and {after.benchmark} cannot be compared: score the "
            "same benchmark again"
        )
    if not same_supply(before, after):
        raise Incomparable(
            f"{before.benchmark} of {before.checkpoint}: the two draws are not of the same supply "
            "and may differ in difficulty: score the checkpoint again"
        )
    solved = [(sum(card.solved.values()), len(card.solved)) for card in (before, after)]
    old, new = (Rate.counted(*counts) for counts in solved)
    p_value = fisher_fall(*solved[0], *solved[1])
    fell = p_value <= alpha
    verdict = "a significant fall" if fell else "no significant fall"
    reason = (
        f"{after.checkpoint} solved {old} of {before.benchmark} before and solves {new} of fresh "
        f"tasks: {verdict} ({p_text(p_value)}, the level is {alpha:g})."
    )
    return Regression(fell=fell, p_value=p_value, before=old, after=new, reason=reason)


def lost_tasks(before: Scorecard, after: Scorecard) -> tuple[str, ...]:
    """Return the tasks that the first solved in every sample, and the second in at most half of its
    samples.
    """
    old, new = counts_of(before), counts_of(after)
    return tuple(
        task
        for task, (solved, samples) in old.items()
        if solved == samples and task in new and 2 * new[task][0] <= new[task][1]
    )
