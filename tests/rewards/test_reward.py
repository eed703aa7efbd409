"""The reward of a completion."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from problems.columns import ProblemError
from rewards.battery.attempts import BatteryRow
from rewards.battery.battery import run_battery
from rewards.battery.cases import CODE, MEDIAN
from rewards.composite import Reward, reward_hash, score_answers
from rewards.config import RewardConfig, Weights
from rewards.question import RewardTask
from sandbox.protocol import Report, TestResult, Verdict
from sandbox.sandbox import Sandbox

REFERENCE, WRONG = CODE["call"].reference, CODE["call"].wrong
verdicts = st.sampled_from([verdict for verdict in Verdict if verdict is not Verdict.INFRA])
configs = st.builds(
    RewardConfig,
    sparse=st.booleans(),
    weights=st.builds(Weights, correctness=st.floats(0.1, 10), format=st.floats(0, 10)),
)


def report(*results: Verdict) -> Report:
    worst = next((result for result in results if result is not Verdict.AC), Verdict.AC)
    return Report("job", worst, tuple(TestResult(result) for result in results))


@given(configs, st.lists(verdicts, min_size=1, max_size=8), st.text())
def test_every_reward_is_bounded_and_reproducible(
    config: RewardConfig, results: list[Verdict], completion: str
) -> None:
    scores = [Reward(config).score(MEDIAN, completion, report(*results)) for _ in range(2)]
    assert scores[0] == scores[1]
    assert scores[0].value is not None
    assert -1.0 <= scores[0].value <= 1.0


@given(configs, st.lists(verdicts, min_size=1, max_size=8), st.data())
def test_passing_one_more_test_never_lowers_the_reward(
    config: RewardConfig, results: list[Verdict], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(results) - 1))
    better = [*results[:at], Verdict.AC, *results[at + 1 :]]
    parses = Verdict.CE not in results and Verdict.MLE not in results
    before, after = (
        Reward(config).score(MEDIAN, REFERENCE, report(*rows)).value for rows in (results, better)
    )
    assert before is not None
    assert after is not None
    assert after >= before or not parses


@given(configs, st.integers(1, 9))
def test_only_a_solution_gets_the_full_reward(config: RewardConfig, tests: int) -> None:
    reward = Reward(config)
    assert reward.score(MEDIAN, REFERENCE, report(*[Verdict.AC] * tests)).value == pytest.approx(
        1.0
    )
    # every test passed, but a limit was exceeded
    late = replace(report(*[Verdict.AC] * tests), verdict=Verdict.TLE)
    assert (reward.score(MEDIAN, REFERENCE, late).value or 0.0) < 1.0


def test_a_judge_failure_gives_no_score() -> None:
    for config in (RewardConfig(), RewardConfig(sparse=False), RewardConfig(kind="random")):
        assert Reward(config).score(MEDIAN, REFERENCE, report(Verdict.INFRA)).value is None


def test_components_explain_the_value() -> None:
    score = Reward(RewardConfig()).score(MEDIAN, WRONG, report(Verdict.WA))
    assert score.components == {
        "correctness": -1.0,
        "format": 1.0,
    }
    assert score.value == pytest.approx(-0.8)


@pytest.mark.parametrize(
    ("completion", "formed"),
    [
        (REFERENCE, 1.0),
        (f"```python\n{REFERENCE}```", 1.0),
        ("median = max", 1.0),
        ("from statistics import median", 1.0),
        ("def mean(xs): ...", -1.0),
        ("", -1.0),
        ("# median", -1.0),
        ("def outer():\n    def median(xs): ...", -1.0),
        ("median", -1.0),
        (REFERENCE + "#" * 200_000, -1.0),
    ],
)
def test_format_requires_a_program_that_defines_the_entry_point(
    completion: str, formed: float
) -> None:
    assert Reward().score(MEDIAN, completion, report(Verdict.WA)).components["format"] == formed


@pytest.mark.parametrize(
    ("completion", "formed"), [("print(1)", 1.0), ("'just text'", -1.0), ("pass", -1.0)]
)
def test_format_requires_a_script_with_an_effect(completion: str, formed: float) -> None:
    assert (
        Reward().score(CODE["stdio"].task, completion, report(Verdict.WA)).components["format"]
        == formed
    )


def test_a_batch_is_scored_in_order(sandbox: Sandbox) -> None:
    completions = [
        REFERENCE,
        WRONG,
        f"```python\n{REFERENCE}```",
        "",
        "def median(xs): return sorted(xs)[len(xs) // 2]",
    ]
    pairs: list[tuple[RewardTask, str]] = [(MEDIAN, completion) for completion in completions]
    scores = score_answers(sandbox, Reward(RewardConfig(sparse=False)), pairs)
    assert [(score.verdict, score.passed, score.total) for score in scores] == [
        ("AC", 4, 4),
        ("WA", 1, 4),
        ("AC", 4, 4),
        ("RE", 0, 4),
        ("WA", 2, 4),
    ]


def test_the_random_control_ignores_tests_and_is_reproducible() -> None:
    reward = Reward(RewardConfig(kind="random"))
    values = {
        completion: reward.score(MEDIAN, completion, report(Verdict.WA)).value
        for completion in map(str, range(400))
    }
    again = {
        completion: reward.score(MEDIAN, completion, report(Verdict.AC)).value
        for completion in values
    }
    assert values == again
    assert set(values.values()) == {1.0, -1.0}
    assert 140 < sum(value == 1.0 for value in values.values()) < 260


def test_the_reward_hash_depends_on_the_config() -> None:
    assert (
        reward_hash(RewardConfig())
        == reward_hash(RewardConfig(weights=Weights()))
        != reward_hash(RewardConfig(sparse=False))
    )


def test_a_reward_that_ignores_the_tests_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"weights.correctness"):
        RewardConfig(weights=Weights(correctness=0.0))


@pytest.mark.parametrize("weight", [math.inf, math.nan, 1e308])
def test_a_weight_is_a_number_that_can_be_added(weight: float) -> None:
    for section in ({"weights": {"style": weight}}, {"by": {"a": {"style": weight}}}):
        with pytest.raises(ValidationError, match="style"):
            RewardConfig.model_validate(section)


def test_each_domain_has_its_own_weights() -> None:
    config = RewardConfig(by={"lists": {"style": 0.5}, "easy": {"format": 0.9}})
    tagged = {
        tags: Reward(config).score(replace(MEDIAN, tags=tags), WRONG, report(Verdict.WA)).gave
        for tags in ((), ("easy",), ("easy", "lists"))
    }
    assert tagged[()] == pytest.approx({"correctness": -0.9, "format": 0.1})
    assert tagged[("easy",)] == pytest.approx({"correctness": -0.5, "format": 0.5})
    assert tagged[("easy", "lists")].keys() == {"correctness", "format", "style"}


def test_the_order_of_the_domains_changes_the_reward_hash() -> None:
    weights = {"a": {"style": 0.5}, "b": {"format": 0.9}}
    swapped = dict(reversed(weights.items()))
    assert reward_hash(RewardConfig(by=weights)) != reward_hash(RewardConfig(by=swapped))


def test_a_domain_that_no_training_problem_has_is_refused_with_the_nearest() -> None:
    config = RewardConfig(by={"lsts": {"style": 0.5}})
    with pytest.raises(ProblemError, match=r"reward\.by: .*'lsts', did you mean 'lists'"):
        config.check_tags([replace(MEDIAN, tags=("lists",))])
    with pytest.raises(ProblemError, match=r"the tags are none"):
        config.check_tags([replace(MEDIAN, tags=("lsts",), split="heldout")])
    config.check_tags([], later=["lsts"])


def test_the_battery_tries_the_weights_of_each_domain(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def formless(reward: Reward, *_: object) -> tuple[list[BatteryRow], str]:  # for a minute's work
        return [BatteryRow("formless", reward.config.weights.format < 1.0, "")], ""

    monkeypatch.setattr("rewards.battery.battery._battery", formless)
    result = run_battery(Reward(RewardConfig(by={"lists": {"format": 9.0}})), sandbox)
    assert {row.name: row.passed for row in result.rows} == {
        "lists: formless": False,
        "formless": True,
    }
