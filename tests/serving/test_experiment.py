"""Experiments: assignment, guardrails, feedback and the decision."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.statistics.hypothesis_tests import Interval
from serving.experiment.analysis import Analysis, analyze
from serving.experiment.assignment import CHAMPION, assigned, position
from serving.experiment.decision import Primary, decide
from serving.experiment.feedback import counted, outliers
from serving.experiment.guardrail import Guardrail, Harm, HarmSequence, guardrail_level
from serving.gateway.observations import Feedback, Observation
from tests.serving.traffic import ANSWER

USERS = [f"user-{number}" for number in range(4000)]
ERRORS = Guardrail("errors", margin=0.02)


@given(st.text(), st.text(), st.floats(0, 0.5), st.floats(0, 0.5))
def test_a_growing_share_takes_no_user_away(salt: str, unit: str, one: float, two: float) -> None:
    small, large = sorted((one, two))
    before = assigned(salt, unit, {"a": small, "b": small})
    if before != CHAMPION:
        assert assigned(salt, unit, {"a": large, "b": large}) == before


def test_arms_get_their_shares_of_the_users() -> None:
    arms = [assigned("salt", user, {"a": 0.05, "b": 0.3}) for user in USERS]
    assert arms.count("a") / len(arms) == pytest.approx(0.05, abs=0.015)
    assert arms.count("b") / len(arms) == pytest.approx(0.3, abs=0.03)


def test_two_experiments_assign_independently() -> None:
    places = np.array([[position(salt, user) for user in USERS] for salt in ("one", "two")])
    assert abs(np.corrcoef(places)[0, 1]) < 0.05


def test_users_of_a_dropped_arm_go_to_all_others_and_nobody_else_moves() -> None:
    before = [assigned("salt", user, {"a": 0.2, "b": 0.3}) for user in USERS]
    after = [assigned("salt", user, {"a": 0.0, "b": 0.3 / 0.8}) for user in USERS]
    moved = [new for old, new in zip(before, after, strict=True) if old != new]
    assert len(moved) == before.count("a")
    assert moved.count("b") / len(moved) == pytest.approx(0.3 / 0.8, abs=0.05)


def test_shares_above_one_are_refused() -> None:
    with pytest.raises(ValueError, match=r"must be in \[0, 1\], and their sum too"):
        assigned("salt", "ann", {"a": 0.6, "b": 0.5})


def measured(differences: Iterable[float], level: float) -> Harm:
    """Return the state of the guardrail after these pairs."""
    sequence = HarmSequence(ERRORS)
    for difference in differences:
        sequence.add(float(difference))
    return sequence.harm(level, level)


def test_a_harm_within_the_margin_is_no_breach() -> None:
    rng = np.random.default_rng(1)
    for _ in range(100):
        differences = (rng.random(500) < 0.12).astype(float) - (rng.random(500) < 0.1)
        assert not measured(differences, 0.001).breached


def test_a_large_harm_is_a_breach_within_few_pairs() -> None:
    harm = measured([1.0] * 20, 0.01)
    assert harm.breached
    assert harm.interval.low > ERRORS.margin
    assert not measured([0.0] * 20, 0.01).breached


def test_a_guardrail_is_cleared_by_enough_equal_pairs() -> None:
    assert not measured([0.0] * 100, 0.05).cleared
    assert measured([0.0] * 1000, 0.05).cleared


def test_a_margin_as_large_as_the_worst_value_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`margin` must be in \[0, 1\)"):
        Guardrail("errors", margin=1.0)


def test_guardrails_arms_and_releases_share_alpha() -> None:
    assert guardrail_level(0.05, 4, arms=2) == pytest.approx(0.05 / 8)
    total = sum(4 * guardrail_level(0.05, 4, release=number) for number in range(1, 5000))
    assert total < 0.05


def test_the_last_vote_of_a_key_on_a_response_counts() -> None:
    votes = [
        Feedback("r", float(at), key, "user", value)
        for at, (key, value) in enumerate([("ann", 0.0), ("bob", 1.0), ("ann", 1.0)])
    ]
    assert [vote.value for vote in counted(votes)] == [1.0, 1.0]


def test_a_stuffer_stands_out_and_others_do_not() -> None:
    assert outliers([*USERS[:20], *["ann"] * 30]) == {"ann": 30}
    assert outliers(USERS[:7]) == {}


def harm(p_value: float = 1.0, cleared_p: float = 0.0, pairs: int = 500) -> Harm:
    interval = Interval(-1.0, 1.0)
    return Harm(ERRORS, pairs, interval, p_value, level=0.01, cleared_p=cleared_p)


QUALITY = Primary("verified", 500, Interval(0.01, 0.1))


def test_a_cleared_challenger_that_gains_is_deployed() -> None:
    decision = decide([harm()], QUALITY)
    assert decision.kind == "deploy"
    assert decision.reasons[0] == "verified: difference +0.01 to +0.1 (500 pairs)."


def test_a_breach_keeps_the_champion_whatever_the_gain() -> None:
    decision = decide([harm(), harm(p_value=0.001)], QUALITY, ratio_p_value=1e-9)
    assert decision.kind == "keep"
    assert "worse than the champion by more than 0.02" in decision.reasons[0]


def test_no_gain_is_trusted_if_requests_were_lost() -> None:
    decision = decide([harm()], QUALITY, ratio_p_value=1e-9)
    assert decision.kind == "continue"
    assert "find the lost requests" in decision.reasons[0]


@pytest.mark.parametrize(
    ("harms", "primary", "reason"),
    [
        ([harm(pairs=10)], QUALITY, "10 of at least 100 pairs"),
        ([harm(cleared_p=0.2)], QUALITY, "0.02 worse is not ruled out yet"),
        ([harm()], Primary("verified", 500, Interval(-0.1, 0.1)), "is not shown yet"),
        ([harm()], Primary("verified", 9, Interval(0.1, 0.9)), "9 of at least 100 pairs"),
    ],
)
def test_too_little_evidence_continues_and_says_why(
    harms: list[Harm], primary: Primary, reason: str
) -> None:
    decision = decide(harms, primary)
    assert decision.kind == "continue"
    assert reason in decision.reasons[0]


def test_a_gain_that_is_ruled_out_keeps_the_champion() -> None:
    assert decide([harm()], Primary("verified", 500, Interval(-0.3, -0.1))).kind == "keep"


def test_a_decision_without_a_primary_metric_says_that_quality_was_not_measured() -> None:
    assert "Quality was not measured" in decide([harm()], None).reasons[0]
    assert decide([harm()], None, tested=True).reasons == decide([harm()], None).reasons[1:]


def answered(number: int, challenger: bool, **changes: object) -> Observation:
    observation = replace(
        ANSWER,
        response=f"r{number}",
        time=float(number),
        version=2 if challenger else 1,
        arm="version 2" if challenger else CHAMPION,
        release="release-0001",
        unit=f"user-{number}",
        total_s=1.0,
    )
    return replace(observation, **changes)  # type: ignore[arg-type]


def analysis(
    rows: list[Observation],
    votes: Sequence[Feedback] = (),
) -> Analysis | None:
    return analyze(rows, votes, challenger=2, shares=[0.5], level=0.05, gain=0.0)


def test_quality_is_not_measured_without_tests_and_votes() -> None:
    assert analysis([answered(n, bool(n % 2)) for n in range(100)]) is None


def test_a_challenger_with_more_verified_answers_gains() -> None:
    rng = np.random.default_rng(1)
    rows = [
        answered(n, bool(n % 2), verified=bool(rng.random() < (0.8 if n % 2 else 0.4)))
        for n in range(800)
    ]
    found = analysis(rows)
    assert found
    assert found.primary.name == "verified answers"
    assert found.primary.pairs == 400
    assert found.primary.interval.low > 0.1
    assert found.welch
    assert found.welch.difference == pytest.approx(0.4, abs=0.1)


def test_one_voter_does_not_decide_the_primary_metric() -> None:
    rows = [answered(n, bool(n % 2), unit="ann") for n in range(500)]
    votes = [Feedback(f"r{n}", float(n), "key", "ann", float(n % 2)) for n in range(500)]
    found = analysis(rows, votes)
    assert found
    assert found.primary.name == "accepted answers"
    assert found.primary.pairs == 0
    assert found.primary.interval.low < 0 < found.primary.interval.high


def test_a_repeated_vote_replaces_the_first() -> None:
    rows = [answered(n, bool(n % 2)) for n in range(2)]
    votes = [
        Feedback(f"r{n}", time, "key", f"user-{n}", value)
        for n in range(2)
        for time, value in ((1.0, 0.0), (2.0, 1.0))
    ]
    found = analysis(rows, votes)
    assert found
    assert found.units == 2
    assert found.primary.interval.low < 0 < found.primary.interval.high
