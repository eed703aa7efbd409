"""Figures of a scorecard: scores per test set, without suspect tasks, and missing estimates."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from evaluation.promotion.rate import Incomparable, Rate
from evaluation.reports.figures import Figures, clean_rate, clean_text, scores, suspects_in
from evaluation.scorecard import Scorecard
from tests.evaluation.scorecards import sample, scorecard


def card(passed: dict[str, list[tuple[bool, bool]]], source: str = "humanevalplus") -> Scorecard:
    """Make a scorecard. passed: whether base and plus pass, for each completion of each task."""
    samples = (
        sample(task, plus, sample=k, sets={"base": base, "plus": plus})
        for task, completions in passed.items()
        for k, (base, plus) in enumerate(completions)
    )
    return scorecard("me", samples, benchmark="humaneval+", source=source)


TWO = [(True, True), (True, False)]
FOUR = card(
    {
        "HumanEval/0": TWO,
        "HumanEval/1": [(False, False)] * 2,
        "HumanEval/2": [(True, True)] * 2,
        "HumanEval/3": TWO,
    }
)


def test_each_test_set_has_scores_or_a_reason() -> None:
    base, plus = scores(FOUR)
    assert (base.name, base.at[1].share, plus.name, plus.at[1].share) == (
        "base",
        0.75,
        "plus",
        0.5,
    )
    assert plus.at.keys() == {1}
    plus = scores(FOUR, (2, 5))[1]
    assert plus.at[2].share == 0.75
    assert plus.lacking.keys() == {5}
    assert re.search(r"HumanEval/0\b.*\b2\b", plus.lacking[5])


@pytest.mark.parametrize("named", ["HumanEval/2", "humanevalplus/HumanEval/2", "humanevalplus/2"])
def test_suspect_tasks_are_excluded_under_any_spelling(named: str) -> None:
    lists = {"humanevalplus": [named, "humanevalplus/99"], "mbpp": ["HumanEval/1"]}
    assert suspects_in(FOUR, lists) == frozenset({"HumanEval/2"})
    assert clean_rate(FOUR, lists) == (
        Rate.over({"HumanEval/0": (1, 2), "HumanEval/1": (0, 2), "HumanEval/3": (1, 2)}),
        1,
    )
    assert clean_text(FOUR, lists).startswith("33.3 %")


def test_contamination_reports_of_no_and_all_tasks_differ() -> None:
    everything = {"humanevalplus": sorted(FOUR.first)}
    assert clean_text(FOUR, {"humanevalplus": []}) != clean_text(FOUR, everything)
    assert "4" in clean_text(FOUR, everything)
    assert clean_rate(FOUR, everything) == (None, 4)
    assert clean_text(FOUR, {"mbpp": ["HumanEval/1"]}) == ""
    assert clean_rate(FOUR, {}) is None


def test_figures_are_written_first_and_ignored_on_reading(tmp_path: Path) -> None:
    figures = Figures.of(FOUR, lists={"humanevalplus": ["humanevalplus/1"]}).as_json()
    FOUR.write(tmp_path / "card.json", figures)
    digest, first, *_ = json.loads((tmp_path / "card.json").read_text()).items()
    assert digest[0] == "sha256"
    assert first == ("figures", figures)
    assert figures["clean"]["scores"]["plus"]["pass@1"]["value"] == pytest.approx(2 / 3)
    assert figures["verdicts"] == {"AC": 4, "WA": 4}
    assert Scorecard.read(tmp_path / "card.json") == FOUR


def test_there_is_no_score_over_no_tasks() -> None:
    with pytest.raises(Incomparable, match="no task"):
        scores(FOUR, without=FOUR.first)
