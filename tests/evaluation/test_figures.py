"""Figures of a scorecard: scores by set of tests, without suspect tasks, and missing estimates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluation.promotion.comparison import Incomparable, Rate
from evaluation.reports.figures import Figures, clean_rate, clean_text, scores, suspects_in
from evaluation.scorecard import Sample, Scorecard


def card(passed: dict[str, list[tuple[bool, bool]]], source: str = "humanevalplus") -> Scorecard:
    """Make a scorecard. passed: for each task's completions, whether base and plus pass."""
    samples = tuple(
        Sample(
            task_id=task,
            sample=k,
            answer="",
            program="",
            verdict="AC" if plus else "WA",
            sets={"base": base, "plus": plus},
        )
        for task, answers in passed.items()
        for k, (base, plus) in enumerate(answers)
    )
    return Scorecard(
        benchmark="humaneval+",
        benchmark_version="v",
        harness_version="1",
        checkpoint="me",
        checkpoint_hash="",
        sampling={},
        samples=samples,
        isolation="none",
        source=source,
    )


TWO = [(True, True), (True, False)]
FOUR = card(
    {
        "HumanEval/0": TWO,
        "HumanEval/1": [(False, False)] * 2,
        "HumanEval/2": [(True, True)] * 2,
        "HumanEval/3": TWO,
    }
)


def test_each_set_of_tests_has_its_scores_as_far_as_the_answers_go() -> None:
    base, plus = scores(FOUR)
    assert (base.name, base.at[1].share, plus.name, plus.at[1].share) == (
        "base",
        0.75,
        "plus",
        0.5,
    ) and plus.at.keys() == {1}
    asked = scores(FOUR, (2, 5))[1]
    assert asked.at[2].share == 0.75 and asked.lacking == {
        5: "no estimate: HumanEval/0 has 2 samples"
    }


@pytest.mark.parametrize("named", ["HumanEval/2", "humanevalplus/HumanEval/2", "humanevalplus/2"])
def test_suspect_tasks_are_left_out_by_whichever_name_the_report_has(named: str) -> None:
    lists = {"humanevalplus": [named, "humanevalplus/99"], "mbpp": ["HumanEval/1"]}
    assert suspects_in(FOUR, lists) == frozenset({"HumanEval/2"})
    assert clean_rate(FOUR, lists) == (
        Rate.over({"HumanEval/0": (1, 2), "HumanEval/1": (0, 2), "HumanEval/3": (1, 2)}),
        1,
    )
    assert clean_text(FOUR, lists) == "33.3 % without 1"


def test_a_report_that_names_no_task_one_that_names_all_and_none_differ() -> None:
    assert clean_text(FOUR, {"humanevalplus": []}) == "no task is suspect"
    everything = {"humanevalplus": sorted(FOUR.first)}
    assert clean_text(FOUR, everything) == "all 4 tasks are suspect" and clean_rate(
        FOUR, everything
    ) == (None, 4)
    assert clean_text(FOUR, {"mbpp": ["HumanEval/1"]}) == "" and clean_rate(FOUR, {}) is None


def test_figures_head_the_file_and_are_not_read_back(tmp_path: Path) -> None:
    told = Figures.of(FOUR, lists={"humanevalplus": ["humanevalplus/1"]}).as_json()
    FOUR.write(tmp_path / "card.json", told)
    assert next(iter(json.loads((tmp_path / "card.json").read_text()).items())) == ("figures", told)
    assert told["clean"]["scores"]["plus"]["pass@1"]["value"] == pytest.approx(2 / 3) and told[
        "verdicts"
    ] == {"AC": 4, "WA": 4}
    assert Scorecard.read(tmp_path / "card.json") == FOUR


def test_a_score_over_no_task_is_none() -> None:
    with pytest.raises(Incomparable, match="no task is left"):
        scores(FOUR, without=FOUR.first)
