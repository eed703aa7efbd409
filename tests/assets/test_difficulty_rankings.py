"""The page of a ranking says how well the static score predicts it."""

from __future__ import annotations

from assets.difficulty_rankings import agreement
from problems.difficulty.difficulty import rank


def test_the_static_score_is_correlated_with_the_measured_ranking() -> None:
    ranks = rank({"a": [True, True], "b": [True, False], "c": [False, False]})
    text = agreement(ranks, {"a": 0.1, "b": 0.5, "c": 0.9})
    assert "Spearman +1.00" in text
    assert "3 problems" in text
    assert "are equal" in agreement(ranks, dict.fromkeys("abc", 0.5))
