"""Failing completions by kind, from real verdicts; quality and cost of the passing ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evaluation.benchmarks import Benchmark, from_problems
from evaluation.judging.failure_kinds import Kind, failures, kind, kinds, rows
from evaluation.judging.quality import HEAD, quality, size, trend
from evaluation.reports.cost import Price, Usage
from evaluation.sampling import CompletionOutput, Sampling
from evaluation.scorecard import Scorecard
from problems.schema import Problem
from sandbox.protocol import Limits
from sandbox.sandbox import Sandbox
from tests.evaluation.judging import judge_completions
from tests.evaluation.scorecards import scorecard

TASK = Problem(
    "toy/0",
    "toy",
    "Double x.",
    "call",
    tuple({"args": [x], "expected": 2 * x} for x in (1, 2, 3)),
    "f",
    visible_tests=1,
    solutions=("def f(x):\n    return 2 * x\n",),
    limits=Limits(wall_s=20.0, cpu_s=1.0),
)
CASES = {
    "AC": ("```python\ndef f(x):\n    return x + x\n```", None),
    "first": ("```python\ndef f(x):\n    return 0\n```", Kind("WA", "test 1")),
    "third": ("```python\ndef f(x):\n    return 2 * x if x < 3 else 0\n```", Kind("WA", "test 3")),
    "raises": ("```python\ndef f(x):\n    return x / 0\n```", Kind("RE", "ZeroDivisionError")),
    "hangs": ("```python\ndef f(x):\n    while True: pass\n```", Kind("TLE")),
    "eats": ("```python\ndef f(x):\n    return bytearray(10**12)\n```", Kind("MLE")),
    "prose": ("I cannot do this.", Kind("extraction")),
    "nothing": ("```python\n```", Kind("extraction")),
    "broken": ("```python\ndef f(x:\n```", Kind("CE")),
    "cut": ("```python\ndef f(x):\n    retu", Kind("cut")),
}


@pytest.fixture(scope="module")
def card(sandbox: Sandbox) -> Scorecard:
    names = sorted(CASES)
    benchmark: Benchmark = from_problems(
        "toy", [replace(TASK, problem_id=f"toy/{name}") for name in names], Sampling()
    )
    samples, isolation = judge_completions(
        benchmark, [CompletionOutput(CASES[name][0], 10, name == "cut") for name in names], sandbox
    )
    return scorecard(
        "me",
        samples,
        benchmark="toy",
        isolation=isolation,
        measured={"tokens": 100.0, "generation_s": 36.0, "quality_style": 0.5},
    )


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_completion_has_its_failure_kind(card: Scorecard, name: str) -> None:
    assert {sample.task_id: kind(sample) for sample in card.samples}[f"toy/{name}"] == CASES[name][
        1
    ]


def test_failures_are_counted_by_kind_and_selected_by_task(
    card: Scorecard,
) -> None:
    assert [each for _, each in kinds(card)].count(Kind("WA", "test 1")) == 1
    assert len(kinds(card)) == len(CASES) - 1
    table = rows(card)
    assert [(name, count) for name, _, count, _ in table[:2]] == [("WA", 2), ("extraction", 2)]
    assert next(of for name, _, _, of in table if name == "RE") == "ZeroDivisionError: 1"
    assert [sample.task_id for sample, _ in failures(card, "re")] == ["toy/raises"]
    assert [sample.task_id for sample, _ in failures(card, "WA test 3")] == ["toy/third"]
    assert [str(each) for _, each in failures(card, task="cut")] == ["cut"]
    assert not failures(card, task="AC")


def test_a_hidden_test_is_named_by_its_number_alone(card: Scorecard) -> None:
    first_failed = {sample.task_id: sample.first_failed for sample in card.samples}
    assert first_failed["toy/first"] == "assert f(1) == 2"
    assert first_failed["toy/third"] == ""


def test_the_truncated_share_is_over_all_completions(card: Scorecard) -> None:
    assert card.cut == 1 / len(CASES)


def test_quality_is_measured_on_passing_programs_only(card: Scorecard) -> None:
    figures = quality(card.samples, {"toy/AC": TASK.solutions[0]})
    assert figures is not None
    assert figures.programs == 1
    assert figures.style == 1.0
    assert figures.complexity == 1.0
    assert figures.length == 1.0
    assert size("x = 1  # one\n\n\ny   =  2") == size("x = 1\ny = 2")
    assert size("def (") == 0
    assert quality([sample for sample in card.samples if sample.verdict != "AC"], {}) is None


def test_a_worse_program_has_a_lower_style(card: Scorecard) -> None:
    good = next(sample for sample in card.samples if sample.verdict == "AC")
    branches = "".join(f"    if x == {i}:\n        return {2 * i}\n" for i in range(14))
    worse = good.model_copy(
        update={"program": f"import os\ndef f(x):\n    l = 1\n{branches}    return 2 * x\n"}
    )
    a, b = quality([good], {}), quality([worse], {})
    assert a
    assert b
    assert b.style < a.style
    assert b.complexity == 15
    assert b.offences > a.offences
    assert a.length is None


def test_a_trend_has_empty_cells_for_unmeasured_figures(
    card: Scorecard,
) -> None:
    [row] = trend([card])
    assert dict(zip(HEAD, row, strict=True)) | {
        "style": "0.500",
        "length": "",
        "pass@1": "10.0 %",
    } == dict(zip(HEAD, row, strict=True))


def test_a_cost_needs_a_price_and_a_count(card: Scorecard) -> None:
    usage = Usage.of(card)
    assert usage.per_solved_problem(Price()) == "100 tokens, 36 s"
    assert usage.cost(Price()) is None
    assert usage.cost(Price(million_tokens=2.0)) == pytest.approx(0.0002)
    assert usage.cost(Price(hour=5.0)) == pytest.approx(0.05)
    assert "0.05 of the price" in usage.per_solved_problem(Price(hour=5.0))
    assert Usage(1, 0.0, 9.0).cost(Price(million_tokens=2.0)) is None  # uncounted, so unknown
    assert Usage(0, 100.0, 9.0).per_solved_problem(Price()) == "none solved"
    assert Usage(1, 0.0, 432.1).per_solved_problem(Price()) == "430 s"
