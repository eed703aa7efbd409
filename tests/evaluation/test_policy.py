"""Each condition of the policy besides the win: a test changes one thing of a good challenger."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from pydantic import ValidationError

from evaluation.promotion.checks import Check, Facts
from evaluation.promotion.gate import Decision, decide
from evaluation.promotion.policy import Policy
from evaluation.promotion.rate import Incomparable
from evaluation.scorecard import Scorecard
from evaluation.statistics.alpha_spending import Gate
from tests.evaluation.scorecards import BETTER, OLD, card, counted

GATES = tuple(
    Gate(
        run_id=f"chain-{i}", benchmark="heldout", benchmark_version=f"v{i}", p_value=0.3, level=0.01
    )
    for i in range(9)
)


def tagged(scorecard: Scorecard, tags: Sequence[tuple[str, ...]]) -> Scorecard:
    samples = tuple(
        sample.model_copy(update={"tags": own})
        for sample, own in zip(scorecard.samples, tags, strict=True)
    )
    return scorecard.model_copy(update={"samples": samples})


def failed(decision: Decision) -> list[str]:
    return [check.name for check in decision.checks if not check.passed]


def test_a_possible_loss_beyond_the_margin_blocks() -> None:
    few = (
        card("old", [1] * 10 + [0] * 10, benchmark="mbpp"),
        card("better", [1] * 9 + [0] * 10 + [1], benchmark="mbpp"),
    )
    many = (
        card("old", [1] * 500 + [0] * 500, benchmark="mbpp"),
        card("better", [1] * 495 + [0] * 500 + [1] * 5, benchmark="mbpp"),
    )
    refused = decide(OLD, BETTER, others=[few])
    assert failed(refused) == ["not worse"]
    assert re.search(r"mbpp.*5\.0 points", "\n".join(refused.reasons))
    assert decide(OLD, BETTER, others=[many]).promoted


def test_a_benchmark_with_its_own_margin_must_be_measured() -> None:
    other = (
        card("old", [1] * 500 + [0] * 500, benchmark="mbpp"),
        card("better", [1] * 490 + [0] * 500 + [1] * 10, benchmark="mbpp"),
    )
    assert failed(decide(OLD, BETTER, Policy(margins={"mbpp": 0.002}), [other])) == ["not worse"]
    absent = decide(OLD, BETTER, Policy(margins={"humaneval": 0.05}), [other])
    assert failed(absent) == ["measured"]
    assert "humaneval" in "\n".join(absent.reasons)


def test_a_significant_loss_in_one_tag_blocks() -> None:
    tags = [("loops",) if i < 30 else ("strings",) for i in range(400)]
    before, after = (
        tagged(card("old", [1] * 100 + [0] * 300), tags),
        tagged(card("new", [0] * 20 + [1] * 200 + [0] * 180), tags),
    )
    decision = decide(before, after)
    assert failed(decision) == ["tags"]
    assert re.search(r"30 tasks.*loops.*100\.0.*33\.3 %", "\n".join(decision.reasons))
    assert decide(before, after, Policy(tags=())).promoted


def test_a_small_loss_among_many_tags_does_not_block() -> None:
    tags = [(f"tag-{i // 20}",) for i in range(400)]
    after = tagged(card("new", [0] * 6 + [1] * 154 + [0] * 240), tags)
    decision = decide(tagged(OLD, tags), after)
    assert decision.comparison is not None
    assert min(bucket.p_worse for bucket in decision.comparison.buckets) == pytest.approx(2**-6)
    assert decision.promoted
    assert "20 groups" in "\n".join(decision.reasons)


@pytest.mark.parametrize(("gap", "passes"), [(0.05, True), (0.3, False), (None, False)])
def test_a_limit_refuses_larger_and_missing_values(gap: float | None, passes: bool) -> None:
    decision = decide(
        OLD,
        BETTER,
        Policy(limits={"hack_gap": 0.1}),
        facts=Facts(measures={} if gap is None else {"hack_gap": gap}),
    )
    assert decision.promoted is passes
    assert "hack_gap" in "\n".join(decision.reasons)


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        (Facts(unverified=("chain-0002",)), "battery"),
        (Facts(missing_links=("clean_problems 0123",)), "provenance"),
        (Facts(picked_on="heldout"), "picked apart"),
        (Facts(earlier_tries=("chain-0002 (2026-11-20): refuse",)), "one decision"),
        (Facts(gates=(GATES[0].model_copy(update={"benchmark_version": "v1"}),)), "fresh tasks"),
    ],
)
def test_an_integrity_failure_refuses_the_promotion(facts: Facts, name: str) -> None:
    assert failed(decide(OLD, BETTER, Policy(spending="fresh"), facts=facts)) == [name]


def test_the_policy_may_allow_unverified_rewards_and_broken_provenance() -> None:
    facts = Facts(
        unverified=("chain-0002",),
        missing_links=("clean_problems 0123",),
        made_elsewhere="/some/folder",
    )
    decision = decide(OLD, BETTER, Policy(battery=False, provenance=False), facts=facts)
    assert decision.promoted
    assert "clean_problems 0123" in "\n".join(decision.reasons)
    assert "/some/folder" in "\n".join(decision.reasons)
    strict = decide(OLD, BETTER, facts=facts)
    assert not strict.promoted
    assert {"battery", "provenance"} <= set(failed(strict))


def test_alpha_spending_falls_per_decision_and_recovers_after_a_promotion() -> None:
    policy, used = (
        Policy(spending="lord", alpha=0.05),
        tuple(gate.model_copy(update={"benchmark_version": "v1"}) for gate in GATES),
    )
    first, tenth = decide(OLD, BETTER, policy), decide(OLD, BETTER, policy, facts=Facts(gates=used))
    won = decide(
        OLD,
        BETTER,
        policy,
        facts=Facts(gates=(*used[:-1], used[-1].model_copy(update={"p_value": 0.001}))),
    )
    levels = [decision.level or 0.0 for decision in (first, tenth, won)]
    assert levels[1] < levels[0] < 0.05
    assert levels[1] < levels[2]
    assert re.search(r"LORD.*0\.05", "\n".join(tenth.reasons))
    assert "fresh tasks" not in failed(tenth)


def test_a_gain_in_pass_at_5_can_promote() -> None:
    before, after = counted("old", [10] * 40 + [0] * 160), counted("new", [2] * 200)
    decision = decide(before, after, Policy(k=5, tags=()))
    assert decision.promoted
    assert decision.comparison is not None
    assert decision.comparison.k == 5
    assert decision.score.solved is None
    assert decision.score.share == pytest.approx(1 - 56 / 252)
    assert not decide(before, after, Policy(tags=())).promoted


def test_k_may_not_exceed_the_number_of_completions() -> None:
    with pytest.raises(ValueError, match=r"pass@20 needs 20"):
        decide(counted("old", [5] * 30), counted("new", [6] * 30), Policy(k=20))


def test_the_clean_score_is_reported_with_the_full_score() -> None:
    decision = decide(OLD, BETTER, facts=Facts(suspects={"heldout": ("t0", "t399", "not asked")}))
    [clean] = decision.clean
    assert (clean.left_out, clean.after and clean.after.tasks) == (2, 398)
    assert re.search(r"2 tasks of heldout.*training data", "\n".join(decision.reasons))


@pytest.mark.parametrize(
    ("policy", "named"),
    [
        ({"margins": {"mbpp": 3}}, "margins.mbpp"),
        ({"margins": {"heldout": 0.03}}, "heldout"),
        ({"limits": {"hackgap": 1}}, "hack_gap"),
        ({"k": 0}, "k"),
    ],
)
def test_an_invalid_policy_is_refused(policy: dict[str, object], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        Policy.model_validate(policy)


def test_every_check_that_refuses_has_a_sentence() -> None:
    facts = Facts(unverified=("c",), missing_links=("x",), picked_on="heldout")
    decision = decide(BETTER, OLD, Policy(limits={"cost": 1}), facts=facts)
    refusing = [check for check in decision.checks if not check.passed and check.name != "gain"]
    assert len(refusing) == 5
    assert all(
        isinstance(check, Check) and check.sentence in decision.reasons for check in refusing
    )


def test_another_version_of_another_benchmark_is_refused() -> None:
    with pytest.raises(Incomparable, match="benchmark versions"):
        decide(
            OLD,
            BETTER,
            others=[
                (
                    card("old", [1], benchmark="mbpp", benchmark_version="v1"),
                    card("new", [1], benchmark="mbpp", benchmark_version="v2"),
                )
            ],
        )
