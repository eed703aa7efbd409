"""The gate respects clusters of related tasks, names its test, and refuses unequal numbers."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

import pytest

from evaluation.benchmarks.embedded import heldout
from evaluation.promotion.comparison import announced_gain, compare
from evaluation.promotion.gate import decide
from evaluation.promotion.method_names import name_of_interval, name_of_test
from evaluation.promotion.policy import Policy
from evaluation.promotion.rate import Incomparable, Rate
from evaluation.promotion.required_sample_size import required_for_promotion
from evaluation.reports.facts import ReportFacts
from evaluation.reports.report import render
from evaluation.scorecard import Scorecard
from problems.clusters import cluster_of
from problems.embedded.heldout import heldout_tasks
from problems.embedded.settings import FamilyConfig
from problems.schema import Problem
from tests.evaluation.report_facts import facts_of
from tests.evaluation.scorecards import BETTER, OLD, counted


def grouped(card: Scorecard, size: int) -> Scorecard:
    """Put each `size` tasks in a row into one cluster."""
    order = {task: number for number, task in enumerate(card.first)}
    samples = tuple(
        each.model_copy(update={"cluster": f"contest {order[each.task_id] // size}"})
        for each in card.samples
    )
    return card.model_copy(update={"samples": samples})


def test_a_gain_in_few_clusters_is_not_shown() -> None:
    assert decide(OLD, BETTER).promoted
    decision = decide(grouped(OLD, 50), grouped(BETTER, 50))
    comparison = decision.comparison
    assert comparison
    assert (comparison.test, comparison.clusters) == ("cluster_sign_flips", 8)
    assert not decision.promoted
    assert comparison.p_better > 0.05
    assert comparison.before.clusters == 8
    assert comparison.before.solved == 100
    assert re.search(r"sign-flip test over 8 clusters", "\n".join(decision.reasons))


def test_clusters_of_one_task_change_nothing() -> None:
    comparison, alone = compare(grouped(OLD, 1), grouped(BETTER, 1)), compare(OLD, BETTER)
    assert comparison == alone
    assert alone.test == "mcnemar"


def test_the_announced_gain_of_related_tasks_is_larger() -> None:
    alone, related = announced_gain(OLD, 0.01), announced_gain(grouped(OLD, 20), 0.01)
    assert alone
    assert related
    assert related > 1.5 * alone


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (counted("old", [1] * 30, n=1), counted("new", [5] * 30, n=5)),
        (
            counted("old", [1] * 30, n=2),
            counted("new", [1] * 30, n=2).model_copy(
                update={"samples": counted("new", [1] * 30, n=2).samples[:-1]}
            ),
        ),
    ],
)
def test_unequal_numbers_of_completions_are_refused(before: Scorecard, after: Scorecard) -> None:
    after = after.model_copy(update={"sampling": {}})
    with pytest.raises(Incomparable, match=r"t0\d\d has \d of old and \d of new"):
        decide(before, after)


def test_a_gate_at_pass_at_5_names_its_test_everywhere() -> None:
    before, after = counted("old", [3, 0] * 50), counted("new", [3, 1] * 50)
    decision = decide(before, after, Policy(k=5, tags=()))
    recorded = decision.model_dump(mode="json")
    test = name_of_test(recorded["comparison"])
    assert recorded["comparison"]["test"] == "sign_flips"
    assert test in "\n".join(decision.reasons)
    facts = facts_of([True] * 8, [True] * 8).model_copy(update={"decision": decision})
    page = html.unescape(render(facts))
    assert "McNemar" not in page
    assert "Wilson" not in page
    assert test in page
    assert name_of_interval(recorded["comparison"]) in page
    assert "pass@5" in facts.gain
    assert "pass@5" in facts.headline
    assert "pass@1:" not in page
    assert facts.summary()["challenger_pass_at_5"] == decision.score.share


def test_a_headline_names_the_benchmark_of_the_gate() -> None:
    facts = facts_of([True] * 8, [True] * 8)
    assert "training" in facts.headline
    comparison = facts.decision.comparison
    assert comparison
    other = comparison.model_copy(update={"benchmark": "kitchen"})
    changed = facts.model_copy(
        update={"decision": facts.decision.model_copy(update={"comparison": other})}
    )
    assert isinstance(changed, ReportFacts)
    assert "kitchen" in changed.headline
    assert "training" not in changed.headline


def test_the_required_gain_of_several_completions_is_stated() -> None:
    decision = decide(counted("old", [5] * 40), counted("new", [5] * 39 + [6]))
    [gain, *_] = required_for_promotion(decision.model_dump(mode="json"))
    assert re.search(r"\d+\.\d points on heldout", gain)


@pytest.mark.parametrize("solved", [0, 100])
def test_all_or_nothing_solved_has_an_interval(solved: int) -> None:
    rate = Rate.of(counted("one", [solved // 10] * 20))
    assert rate.high - rate.low == pytest.approx(0.168, abs=0.01)


def problem(source: str, key: str, tags: Sequence[str] = (), **extra: object) -> Problem:
    return Problem(f"{source}/{key}", source, "", "stdio", (), tags=tuple(tags), extra=dict(extra))


@pytest.mark.parametrize(
    ("related", "name"),
    [
        (problem("codecontests", "1575_a_another_sorting_problem"), "codeforces 1575"),
        (problem("codecontests", "p00001_list_of_top_3_hills"), ""),
        (
            problem("livecodebench", "abc301_a", ("atcoder", "easy"), date="2023-05-13T00:00:00"),
            "atcoder 2023-05-13",
        ),
        (problem("leetcode", "two-sum", date="2024-08-04"), "2024-08-04"),
        (problem("kitchen", "1", cluster="soups"), "soups"),
        (problem("kitchen", "1", repository="flask"), "flask"),
        (problem("humaneval", "0", task_id="HumanEval/0"), ""),
    ],
)
def test_the_cluster_of_a_problem_is_its_contest_or_family(related: Problem, name: str) -> None:
    assert cluster_of(related) == name


def test_no_two_tasks_of_a_held_out_draw_share_a_composition() -> None:
    benchmark = heldout(heldout_tasks(FamilyConfig(), 200, 100))
    clusters = [benchmark.harness.cluster(task) for task in benchmark.harness.tasks.values()]
    assert len(clusters) == len(set(clusters)) == 100
