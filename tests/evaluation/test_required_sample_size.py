"""The required sample size: the gate promotes with what it names, and not with less."""

from __future__ import annotations

import re

import pytest

from evaluation.promotion.gate import Decision, decide
from evaluation.promotion.required_sample_size import (
    losses_allowed,
    sufficed,
    tasks_needed,
    wins_needed,
)
from evaluation.scorecard import Sample, Scorecard

TASKS = 200


def card(solved: set[int], who: str, benchmark: str = "heldout", tasks: int = TASKS) -> Scorecard:
    samples = tuple(
        Sample(task_id=f"t/{i:04}", answer="", program="", verdict="AC" if i in solved else "WA")
        for i in range(tasks)
    )
    return Scorecard(
        benchmark=benchmark,
        benchmark_version="v",
        harness_version="1",
        checkpoint=who,
        checkpoint_hash=who,
        sampling={},
        samples=samples,
        isolation="none",
    )


def gated(
    won: int, lost: int, tasks: int = TASKS, others: tuple[tuple[int, int], ...] = ()
) -> Decision:
    """Decide where the champion solves the first half; `others`: won and lost elsewhere."""
    half = tasks // 2

    def pair(won: int, lost: int, benchmark: str) -> tuple[Scorecard, Scorecard]:
        after = set(range(lost, half + won))
        return card(set(range(half)), "old", benchmark, tasks), card(after, "new", benchmark, tasks)

    before, after = pair(won, lost, "heldout")
    return decide(
        before, after, others=[pair(*changed, f"other {i}") for i, changed in enumerate(others)]
    )


@pytest.mark.parametrize("lost", [0, 4, 17])
def test_with_so_many_tasks_won_the_gate_promotes_and_with_one_fewer_it_does_not(lost: int) -> None:
    decision = gated(0, lost)
    level = decision.level or decision.policy.alpha
    needed = wins_needed(lost, TASKS, level, decision.policy.minimum_gain)
    assert needed is not None
    assert gated(needed, lost).kind == "promote" and gated(needed - 1, lost).kind == "refuse"


@pytest.mark.parametrize(("won", "lost"), [(6, 2), (30, 20)])
def test_as_good_on_so_many_tasks_the_gate_sees_the_gain(won: int, lost: int) -> None:
    decision = gated(won, lost)
    level = decision.level or decision.policy.alpha
    needed = tasks_needed(won, lost, TASKS, level)
    assert decision.kind == "refuse" and needed is not None and needed > TASKS
    more = gated(round(won * needed / TASKS), round(lost * needed / TASKS), needed - needed % 2)
    assert more.comparison and more.comparison.p_better <= level


def test_what_is_said_is_what_was_lacking() -> None:
    [to_win, or_more, gain] = sufficed(gated(6, 3).model_dump(mode="json"))
    assert re.fullmatch(
        r"With the 3 tasks of heldout that it lost, it had to win (\d+) that the champion fails, "
        r"and won 6: (\d+) tasks more\.",
        to_win,
    )
    assert or_more.startswith("Or more tasks: were it as good on others, about ")
    assert gain == "A gain of at least 2 points on heldout: it lacked 0.5, or 1 task."


def test_a_fall_elsewhere_says_how_many_losses_would_have_been_borne() -> None:
    decision = gated(40, 0, others=((0, 20),))
    said = sufficed(decision.model_dump(mode="json"))
    allowed = losses_allowed(0, 20, decision.policy.harm_alpha)
    assert (
        decision.kind == "refuse"
        and f"with at most {allowed} lost no fall would have been shown" in " ".join(said)
    )
    assert [
        c.p_worse > decision.policy.harm_alpha
        for c in gated(40, 0, others=((0, allowed), (0, allowed + 1))).others
    ] == [True, False]


def test_of_a_promotion_and_of_the_champions_own_weights() -> None:
    assert sufficed(gated(40, 0).model_dump(mode="json")) == []
    same = decide(card({1}, "same"), card({1}, "same"))
    assert sufficed(same.model_dump(mode="json")) == ["Other weights: it is the champion itself."]
