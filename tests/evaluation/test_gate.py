"""The gate promotes better challengers, refuses others, and gives its reasons."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.promotion.gate import Decision, decide
from evaluation.promotion.policy import Policy
from evaluation.promotion.rate import Incomparable
from evaluation.promotion.regression import regressed
from evaluation.scorecard import Scorecard
from tests.evaluation.scorecards import BETTER, LUCKY, OLD, card


def failed(decision: Decision) -> list[str]:
    """Return the names of the checks that failed."""
    return [check.name for check in decision.checks if not check.passed]


def test_a_clearly_better_challenger_is_promoted_with_reasons() -> None:
    decision = decide(OLD, BETTER)
    assert decision.kind == "promote"
    assert decision.p_value is not None
    assert decision.p_value < 1e-6
    assert decision.comparison is not None
    assert (
        len(decision.comparison.won),
        len(decision.comparison.lost),
    ) == (60, 10)
    assert "p < 0.0001" in "\n".join(decision.reasons)
    assert failed(decision) == []


def test_a_gain_within_chance_is_refused() -> None:
    decision = decide(OLD, LUCKY)
    assert not decision.promoted
    assert "win" in failed(decision)
    assert "p = 0.151" in "\n".join(decision.reasons)


def test_a_refusal_states_the_required_sample_size() -> None:
    text = "\n".join(decide(OLD, LUCKY).reasons)
    assert re.search(r"400 tasks.*3\.1 points.*2\.0 points.*919 tasks", text)
    # 400 tasks are enough to detect a gain of 20 points, so no larger number is required.
    detectable = "\n".join(decide(OLD, LUCKY, Policy(minimum_gain=0.2)).reasons)
    assert "20.0 points" in detectable
    assert "919" not in detectable


def test_a_worse_challenger_is_refused() -> None:
    decision = decide(BETTER, OLD)
    assert not decision.promoted
    assert decision.comparison is not None
    assert decision.comparison.p_worse < 0.01
    assert "win" in failed(decision)


def test_the_first_checkpoint_is_installed_without_a_comparison() -> None:
    decision = decide(None, OLD)
    assert decision.kind == "install"
    assert decision.promoted
    assert decision.comparison is None
    assert "100 of 400" in "\n".join(decision.reasons)


def test_the_weights_of_the_champion_are_refused() -> None:
    decision = decide(OLD, OLD)
    assert failed(decision) == ["win"]
    assert OLD.checkpoint_hash in "\n".join(decision.reasons)


def test_a_significant_gain_below_the_minimum_is_refused() -> None:
    decision = decide(OLD, BETTER, Policy(minimum_gain=0.2))
    assert failed(decision) == ["gain"]
    assert not decision.promoted
    assert re.search(r"12\.5 points.*20\.0 points", "\n".join(decision.reasons))


def test_an_unchanged_other_benchmark_does_not_block() -> None:
    others = [
        (
            card("old", [0] * 164, benchmark="humaneval"),
            card("better", [0] * 164, benchmark="humaneval"),
        )
    ]
    assert decide(OLD, BETTER, others=others).promoted


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (card("new", [1] * 400, benchmark_version="v2"), "benchmark versions"),
        (card("new", [1] * 400, benchmark="mbpp"), "different benchmarks"),
        (card("new", [1] * 399), "1 task.*t399"),
        (card("new", [1] * 400, harness_version="2"), "harness versions"),
        (card("new", [1] * 400, sampling={"n": 2}), "samplings"),
    ],
)
def test_scorecards_with_different_settings_are_not_compared(other: Scorecard, named: str) -> None:
    with pytest.raises(Incomparable, match=named):
        decide(OLD, other)


def test_an_unjudged_completion_stops_the_decision() -> None:
    broken = OLD.model_copy(
        update={
            "samples": (*OLD.samples[:-1], OLD.samples[-1].model_copy(update={"verdict": "INFRA"}))
        }
    )
    with pytest.raises(ValueError, match=r"1 completion.*no verdict"):
        decide(OLD, broken)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=120))
def test_at_most_one_of_two_scorecards_beats_the_other(solved: list[tuple[bool, bool]]) -> None:
    a, b = card("a", [s for s, _ in solved]), card("b", [s for _, s in solved])
    forth, back = decide(a, b), decide(b, a)
    assert not (forth.promoted and back.promoted)
    assert forth.reasons
    assert back.reasons
    assert forth.comparison
    assert back.comparison
    assert forth.comparison.won == back.comparison.lost


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60), st.randoms())
def test_the_decision_does_not_depend_on_the_order_of_the_tasks(
    solved: list[tuple[bool, bool]], random: object
) -> None:
    a, b = card("a", [s for s, _ in solved]), card("b", [s for _, s in solved])
    mixed = list(b.samples)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert decide(a, b) == decide(a, b.model_copy(update={"samples": tuple(mixed)}))


def test_only_a_significant_loss_is_a_regression() -> None:
    fallen = regressed(OLD, card("old", [1] * 60 + [0] * 340, benchmark_version="v2"))
    wobbled = regressed(OLD, card("old", [1] * 90 + [0] * 310, benchmark_version="v2"))
    assert fallen.fell
    assert re.search(r"100 of 400.*60 of 400.*p = 0\.0003", fallen.reason)
    assert not wobbled.fell
    assert "90 of 400" in wobbled.reason


def test_a_regression_compares_scores_of_one_checkpoint() -> None:
    with pytest.raises(Incomparable, match="one checkpoint"):
        regressed(OLD, BETTER)


def test_a_regression_compares_draws_of_one_supply() -> None:
    before, after = [
        OLD.model_copy(
            update={
                "samples": tuple(
                    each.model_copy(update={"task_id": f"{supply}/{each.task_id}"})
                    for each in OLD.samples
                )
            }
        )
        for supply in ("embedded/heldout", "embedded/heldout/1")
    ]
    with pytest.raises(Incomparable, match="heldout of old"):
        regressed(before, after)


def test_the_hash_of_a_scorecard_ignores_durations() -> None:
    assert OLD.content_hash == OLD.model_copy(update={"measured": {"seconds": 3.0}}).content_hash
    assert OLD.content_hash != BETTER.content_hash


def test_a_decision_survives_json() -> None:

    decision = decide(OLD, BETTER)
    assert Decision.model_validate_json(decision.model_dump_json()) == decision
