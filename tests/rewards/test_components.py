"""The other reward components, and how they are combined into one number."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from problems.dataset.rl_parquet import COST, ground_truth, problem_from_ground_truth
from rewards.battery.cases import CODE, MEDIAN
from rewards.choices import ShownChoice, read_choices
from rewards.components.correctness import correctness
from rewards.components.efficiency import efficiency, reference_cost, with_costs
from rewards.composite import Reward, reward_hash
from rewards.config import QUALITY, RewardConfig, Weights
from rewards.preference import Preferences, bradley_terry
from rewards.scalar import constrained, lexicographic, weighted_sum
from sandbox.protocol import Report, TestResult, Verdict
from sandbox.sandbox import Sandbox

REFERENCE = CODE["call"].reference
COUNTS = st.lists(st.sampled_from([Verdict.AC, Verdict.WA]), min_size=1, max_size=8)
NAMES = ("correctness", "style", "efficiency")
VALUES = st.fixed_dictionaries({name: st.floats(-1, 1) for name in NAMES})
WEIGHTS = {"correctness": 0.7, "style": 0.2, "efficiency": 0.1}


def report(*results: Verdict, cpu_s: float = 0.0, peak_bytes: int = 0) -> Report:
    worst = next((result for result in results if result is not Verdict.AC), Verdict.AC)
    return Report(
        "job", worst, tuple(TestResult(result) for result in results), cpu_s, 0.0, peak_bytes
    )


def test_dense_correctness_counts_only_hidden_tests() -> None:
    assert (
        correctness(report(Verdict.AC, Verdict.AC, Verdict.WA, Verdict.WA), dense=1.0, visible=2)
        == -1.0
    )
    assert (
        correctness(report(Verdict.WA, Verdict.WA, Verdict.AC, Verdict.WA), dense=1.0, visible=2)
        == 0.0
    )


@given(COUNTS, st.floats(0, 1), st.integers(0, 9))
def test_only_a_solution_scores_one(results: list[Verdict], dense: float, visible: int) -> None:
    value = correctness(report(*results), dense=dense, visible=visible)
    assert value is not None
    assert -1.0 <= value <= 1.0
    assert (value == 1.0) == all(result is Verdict.AC for result in results)


def test_a_schedule_interpolates_between_binary_and_dense() -> None:
    config = RewardConfig(schedule=((0, 0.0), (10, 1.0), (20, 1.0), (40, 0.0)))
    assert [config.dense_share(step) for step in (0, 5, 10, 15, 30, 40, 99)] == [
        0.0,
        0.5,
        1.0,
        1.0,
        0.5,
        0.0,
        0.0,
    ]
    half = report(Verdict.AC, Verdict.WA)
    values = [
        Reward(config).score(MEDIAN, REFERENCE, half, step).components["correctness"]
        for step in (0, 5, 10)
    ]
    assert values == [-1.0, -0.5, 0.0]


@pytest.mark.parametrize(
    "broken",
    [
        {"schedule": ((5, 0.0), (5, 1.0))},
        {"floors": {"style": 0.0}},
        {"combine": "constraint"},
        {"preferences": "x.jsonl"},
        {"file": "x.py", "kind": "random"},
    ],
)
def test_contradictory_reward_settings_are_refused(broken: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        RewardConfig.model_validate(broken)


@given(VALUES, st.sampled_from(NAMES), st.floats(0, 2))
def test_every_scalarization_is_monotone(values: dict[str, float], name: str, more: float) -> None:
    better = values | {name: min(1.0, values[name] + more)}
    for combine in (weighted_sum, lexicographic, lambda v, w: constrained(v, w, {"style": 0.0})):
        before, after = combine(values, WEIGHTS), combine(better, WEIGHTS)
        assert -1.0 <= before <= after + 1e-12
        assert after <= 1.0


@given(VALUES, VALUES)
def test_the_heaviest_component_decides_in_lexicographic_order(
    one: dict[str, float], other: dict[str, float]
) -> None:
    if one["correctness"] - other["correctness"] > 0.1:
        assert lexicographic(one, WEIGHTS) > lexicographic(other, WEIGHTS)


@given(VALUES, VALUES)
def test_a_met_floor_scores_higher_than_a_missed_one(
    one: dict[str, float], other: dict[str, float]
) -> None:
    if one["style"] >= 0.0 > other["style"]:
        assert constrained(one, WEIGHTS, {"style": 0.0}) > constrained(
            other, WEIGHTS, {"style": 0.0}
        )


def test_efficiency_compares_solutions_with_the_references() -> None:
    measured = reference_cost(
        [report(Verdict.AC, cpu_s=s, peak_bytes=2**25) for s in (0.1, 0.2, 0.4)]
    )
    problem = replace(MEDIAN, extra={COST: measured.model_dump()})
    costs = [
        efficiency(problem, report(Verdict.AC, cpu_s=s, peak_bytes=2**25))
        for s in (0.05, 0.2, 0.5, 1.0, 9.0)
    ]
    assert costs[:2] == [1.0, 1.0]
    assert costs[-1] == 0.5
    assert costs == sorted(costs, key=lambda c: -(c or 0.0))
    assert 0.5 < (costs[2] or 0.0) < 1.0
    unmeasured = efficiency(problem, report(Verdict.AC, cpu_s=9.0, peak_bytes=0))
    # memory that was not measured earns no credit
    assert unmeasured is not None
    assert unmeasured <= costs[-1]
    assert efficiency(problem, report(Verdict.WA, cpu_s=0.0)) == -1.0
    assert efficiency(MEDIAN, report(Verdict.AC)) is None


def test_reference_costs_survive_the_ground_truth_of_verl(sandbox: Sandbox) -> None:
    [measured, bare] = with_costs(sandbox, [replace(MEDIAN, solutions=(REFERENCE,)), MEDIAN])
    assert bare == MEDIAN
    assert (
        efficiency(
            problem_from_ground_truth(ground_truth(measured)), report(Verdict.AC, cpu_s=1e-6)
        )
        == 1.0
    )


def test_a_missing_component_has_no_weight() -> None:
    score = Reward(QUALITY).score(MEDIAN, REFERENCE, report(Verdict.AC))
    assert score.value == 1.0
    assert "efficiency" not in score.components


def test_timed_components_are_listed() -> None:
    assert RewardConfig().timed == ()
    assert QUALITY.timed == ("efficiency",)


@given(
    st.lists(st.sampled_from(list(Verdict)), min_size=1, max_size=4),
    st.sampled_from(["sum", "lexicographic"]),
    st.booleans(),
)
def test_the_trace_sums_to_the_value(results: list[Verdict], combine: str, sparse: bool) -> None:
    config = RewardConfig.model_validate({"combine": combine, "sparse": sparse})
    score = Reward(config).score(MEDIAN, REFERENCE, report(*results))
    assert score.value is None or sum(score.gave.values()) == pytest.approx(score.value)


def choice(left: str, right: str, chosen: str) -> ShownChoice:
    return ShownChoice.model_validate(
        {"problem_id": "p", "left": left, "right": right, "chosen": chosen}
    )


def test_preferences_order_completions_as_the_choices_do() -> None:
    chosen = bradley_terry(
        [choice("a", "b", "left")] * 8
        + [choice("b", "c", "left")] * 6
        + [choice("c", "b", "left")] * 2
        + [choice("a", "c", "tie")]
    )
    assert 1 > chosen["a"] > chosen["b"] > chosen["c"] > -1


@given(st.integers(1, 9))
def test_ties_make_completions_equal(n: int) -> None:
    assert bradley_terry([choice("a", "b", "tie")] * n) == pytest.approx({"a": 0.0, "b": 0.0})


@given(
    st.lists(
        st.tuples(
            st.sampled_from("ab"), st.sampled_from("cd"), st.sampled_from(["left", "right", "tie"])
        ),
        max_size=12,
    )
)
def test_preferences_do_not_depend_on_the_side(rows: list[tuple[str, str, str]]) -> None:
    swapped = {"left": "right", "right": "left", "tie": "tie"}
    one = bradley_terry([choice(*row) for row in rows])
    assert bradley_terry([choice(b, a, swapped[chosen]) for a, b, chosen in rows]) == pytest.approx(
        one, abs=1e-6
    )


@pytest.mark.parametrize("name", ["choices.jsonl", "choices.parquet"])
def test_choices_are_read_and_rewarded(tmp_path: Path, name: str) -> None:
    sides = {"left": REFERENCE, "right": "def median(xs): ..."}
    row = sides | {"problem_id": MEDIAN.problem_id, "chosen": "left", "judge": None}
    if name.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist([row]), tmp_path / name)
    else:
        (tmp_path / name).write_text(json.dumps(row) + "\n")
    rows = read_choices(tmp_path / name)
    assert rows == [ShownChoice(problem_id=MEDIAN.problem_id, chosen="left", **sides)]
    config = RewardConfig(weights=Weights(preference=1.0), preferences=str(tmp_path / name))
    shown, other = (
        Reward(config).score(MEDIAN, text, report(Verdict.AC)).components.get("preference")
        for text in (REFERENCE, REFERENCE + "#")
    )
    assert shown is not None
    assert shown > 0.0
    assert other is None
    assert Preferences(rows).value("another", REFERENCE) is None


def test_a_choice_between_equal_completions_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text(
        '{"problem_id": "p", "left": "a", "right": "a", "chosen": "left"}\n'
    )
    with pytest.raises(ValueError, match=r"c\.jsonl: line 1: "):
        read_choices(tmp_path / "c.jsonl")


def test_the_reward_hash_depends_on_file_contents_only(tmp_path: Path) -> None:
    for name, text in (("a.py", "1"), ("b.py", "1"), ("c.py", "2")):
        (tmp_path / name).write_text(text)
    a, b, c = (
        reward_hash(RewardConfig(file=str(tmp_path / name))) for name in ("a.py", "b.py", "c.py")
    )
    assert a == b != c
