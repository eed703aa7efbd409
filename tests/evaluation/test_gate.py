"""The gate: what it promotes, what it refuses, and its reasons."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.promotion.gate import Incomparable, Policy, decide, regressed
from evaluation.scorecard import Sample, Scorecard


def card(
    name: str,
    solved: Sequence[bool | int],
    benchmark: str = "heldout",
    version: str = "v1",
    **changes: object,
) -> Scorecard:
    samples = tuple(
        Sample(task_id=f"t{i}", answer="", program="", verdict="AC" if s else "WA")
        for i, s in enumerate(solved)
    )
    made = Scorecard(
        benchmark=benchmark,
        benchmark_version=version,
        harness_version="1",
        checkpoint=name,
        checkpoint_hash=f"hash of {name}",
        sampling={"n": 1},
        isolation="test",
        samples=samples,
    )
    return made.model_copy(update=changes)


OLD = card("old", [1] * 100 + [0] * 300)
BETTER = card("better", [1] * 90 + [0] * 10 + [1] * 60 + [0] * 240)
LUCKY = card("lucky", [1] * 95 + [0] * 5 + [1] * 10 + [0] * 290)


def test_a_clearly_better_challenger_is_promoted_and_told_why() -> None:
    decision = decide(OLD, BETTER)
    assert decision.kind == "promote" and decision.p_value is not None and decision.p_value < 1e-6
    assert decision.comparison is not None and (
        len(decision.comparison.won),
        len(decision.comparison.lost),
    ) == (60, 10)
    assert "the gain counts as real" in decision.to_text()


def test_a_gain_that_may_be_luck_is_refused_with_the_power_said() -> None:
    decision = decide(OLD, LUCKY)
    assert not decision.promoted
    assert (
        "luck is not ruled out" in decision.to_text()
        and "with 400 tasks a true gain of" in decision.to_text()
    )


def test_how_many_tasks_would_show_the_least_gain_that_counts_is_said_with_the_power() -> None:
    told = decide(OLD, LUCKY).to_text()
    assert (
        "To find 2.0 points as surely, the least that a new version must bring, takes about "
        in told
    )
    assert (
        "that would most likely have been seen"
        in decide(OLD, LUCKY, Policy(minimum_gain=0.2)).to_text()
    )


def test_a_worse_challenger_is_refused_as_worse() -> None:
    decision = decide(BETTER, OLD)
    assert not decision.promoted and "more than bad luck explains" in decision.to_text()


def test_the_first_checkpoint_is_installed_and_not_called_an_improvement() -> None:
    decision = decide(None, OLD)
    assert decision.kind == "install" and decision.promoted and decision.comparison is None
    assert "not an improvement shown" in decision.to_text()


def test_the_champion_itself_is_refused() -> None:
    assert "the very weights of the champion" in decide(OLD, OLD).to_text()


def test_a_sure_gain_below_the_minimum_is_refused() -> None:
    decision = decide(OLD, BETTER, Policy(minimum_gain=0.2))
    assert not decision.promoted and "less than the 20.0 points" in decision.to_text()


def test_a_fall_on_another_benchmark_blocks() -> None:
    others = [
        (card("old", [1] * 50 + [0] * 50, "mbpp"), card("better", [1] * 30 + [0] * 70, "mbpp"))
    ]
    decision = decide(OLD, BETTER, others=others)
    assert not decision.promoted and "blocks the promotion" in decision.to_text()


def test_an_unchanged_other_benchmark_does_not_block() -> None:
    others = [(card("old", [0] * 164, "humaneval"), card("better", [0] * 164, "humaneval"))]
    assert decide(OLD, BETTER, others=others).promoted


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (card("new", [1] * 400, version="v2"), "benchmark versions"),
        (card("new", [1] * 400, "mbpp"), "different benchmarks"),
        (card("new", [1] * 399), "1 tasks are in one scorecard only, the first is t399"),
        (card("new", [1] * 400, harness_version="2"), "harness versions"),
        (card("new", [1] * 400, sampling={"n": 2}), "samplings"),
    ],
)
def test_cards_that_measure_different_things_are_not_compared(other: Scorecard, named: str) -> None:
    with pytest.raises(Incomparable, match=named):
        decide(OLD, other)


def test_a_card_with_an_answer_that_nobody_judged_decides_nothing() -> None:
    broken = OLD.model_copy(
        update={
            "samples": (*OLD.samples[:-1], OLD.samples[-1].model_copy(update={"verdict": "INFRA"}))
        }
    )
    with pytest.raises(ValueError, match="1 answers have no verdict"):
        decide(OLD, broken)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=120))
def test_no_pair_of_cards_is_promoted_both_ways(solved: list[tuple[bool, bool]]) -> None:
    a, b = card("a", [s for s, _ in solved]), card("b", [s for _, s in solved])
    forth, back = decide(a, b), decide(b, a)
    assert not (forth.promoted and back.promoted)
    assert forth.reasons and back.reasons
    assert forth.comparison and back.comparison and forth.comparison.won == back.comparison.lost


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60), st.randoms())
def test_the_decision_does_not_depend_on_the_order_of_the_tasks(
    solved: list[tuple[bool, bool]], random: object
) -> None:
    a, b = card("a", [s for s, _ in solved]), card("b", [s for _, s in solved])
    mixed = list(b.samples)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert decide(a, b) == decide(a, b.model_copy(update={"samples": tuple(mixed)}))


def test_a_fall_on_fresh_tasks_is_seen_and_a_wobble_is_not() -> None:
    fallen = regressed(OLD, card("old", [1] * 60 + [0] * 340, version="v2"))
    wobbled = regressed(OLD, card("old", [1] * 90 + [0] * 310, version="v2"))
    assert fallen.fell and "a fall that chance explains with p" in fallen.reason
    assert not wobbled.fell and "within what chance explains" in wobbled.reason


def test_a_regression_is_about_one_checkpoint() -> None:
    with pytest.raises(Incomparable, match="one checkpoint"):
        regressed(OLD, BETTER)


def test_the_hash_of_a_scorecard_leaves_out_what_the_clock_measured() -> None:
    assert OLD.content_hash == OLD.model_copy(update={"measured": {"seconds": 3.0}}).content_hash
    assert OLD.content_hash != BETTER.content_hash


def test_the_decision_survives_json() -> None:
    from evaluation.promotion.gate import Decision

    decision = decide(OLD, BETTER)
    assert Decision.model_validate_json(decision.model_dump_json()) == decision
