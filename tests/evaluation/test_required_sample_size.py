"""The gate promotes with the required sample size, and not with less."""

from __future__ import annotations

import re

import pytest

from evaluation.promotion.gate import Decision, decide
from evaluation.promotion.required_sample_size import (
    losses_allowed,
    required_for_promotion,
    tasks_needed,
    wins_needed,
)
from evaluation.scorecard import Scorecard
from tests.evaluation.scorecards import card

TASKS = 200


def gated(
    won: int, lost: int, tasks: int = TASKS, others: tuple[tuple[int, int], ...] = ()
) -> Decision:
    """Decide for a champion that solves the first half.

    others: tasks won and lost on each other benchmark.
    """
    half = tasks // 2

    def pair(won: int, lost: int, benchmark: str) -> tuple[Scorecard, Scorecard]:
        return (
            card("old", (i < half for i in range(tasks)), benchmark=benchmark),
            card("new", (lost <= i < half + won for i in range(tasks)), benchmark=benchmark),
        )

    before, after = pair(won, lost, "heldout")
    return decide(
        before, after, others=[pair(*changed, f"other {i}") for i, changed in enumerate(others)]
    )


@pytest.mark.parametrize("lost", [0, 4, 17])
def test_the_gate_promotes_exactly_from_the_required_wins(lost: int) -> None:
    decision = gated(0, lost)
    level = decision.level or decision.policy.alpha
    needed = wins_needed(lost, TASKS, level, decision.policy.minimum_gain)
    assert needed is not None
    assert gated(needed, lost).kind == "promote"
    assert gated(needed - 1, lost).kind == "refuse"


@pytest.mark.parametrize(("won", "lost"), [(6, 2), (30, 20)])
def test_the_required_tasks_show_an_equal_gain(won: int, lost: int) -> None:
    decision = gated(won, lost)
    level = decision.level or decision.policy.alpha
    needed = tasks_needed(won, lost, TASKS, level)
    assert decision.kind == "refuse"
    assert needed is not None
    assert needed > TASKS
    more = gated(round(won * needed / TASKS), round(lost * needed / TASKS), needed - needed % 2)
    assert more.comparison
    assert more.comparison.p_better <= level


def test_the_sentences_name_the_failed_conditions() -> None:
    [to_win, or_more, gain] = required_for_promotion(gated(6, 3).model_dump(mode="json"))
    assert re.search(r"\b3 tasks of heldout.* \d+ .*\b6\b.* \d+ tasks", to_win)
    assert re.search(r"\d", or_more)
    assert re.search(r"2 points.*heldout.*0\.5.*1 task", gain)


def test_a_loss_elsewhere_states_the_allowed_losses() -> None:
    decision = gated(40, 0, others=((0, 20),))
    sentences = required_for_promotion(decision.model_dump(mode="json"))
    allowed = losses_allowed(0, 20, decision.policy.harm_alpha)
    assert decision.kind == "refuse"
    assert any(f" {allowed} lost" in each for each in sentences)
    assert [
        c.p_worse > decision.policy.harm_alpha
        for c in gated(40, 0, others=((0, allowed), (0, allowed + 1))).others
    ] == [True, False]


def test_promotions_and_champion_weights_require_nothing() -> None:
    assert required_for_promotion(gated(40, 0).model_dump(mode="json")) == []
    one = card("same", (i == 1 for i in range(TASKS)))
    same = decide(one, one)
    [sentence] = required_for_promotion(same.model_dump(mode="json"))
    assert "weights" in sentence
