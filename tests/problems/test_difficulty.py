"""Difficulty is a pass rate with an interval, independent of the order of outcomes."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from problems.columns import ProblemError
from problems.difficulty.difficulty import rank, read_ranks, write_ranks
from problems.wilson import wilson_bounds

outcomes = st.dictionaries(st.text(min_size=1), st.lists(st.booleans(), min_size=1))


def test_wilson_agrees_with_a_published_value() -> None:
    assert wilson_bounds(8, 10) == pytest.approx(
        (0.4902, 0.9433), abs=1e-4
    )  # Newcombe 1998, method 3
    assert wilson_bounds(0, 0) == (0.0, 1.0)


@given(outcomes)
def test_ranks_run_from_easiest_to_hardest(
    passed: dict[str, list[bool]],
) -> None:
    ranks = rank(passed)
    assert [row.rank for row in ranks] == list(range(len(passed)))
    assert all(a.pass_rate >= b.pass_rate for a, b in pairwise(ranks))
    assert all(
        0 <= row.low <= row.pass_rate + 1e-12 and row.pass_rate <= row.high + 1e-12 <= 1 + 1e-12
        for row in ranks
    )
    assert rank(dict(reversed(passed.items()))) == ranks


def test_a_problem_without_a_scored_completion_is_refused() -> None:
    with pytest.raises(ValueError, match="toy/2"):
        rank({"toy/1": [True], "toy/2": []})


def test_ranks_survive_a_round_trip(tmp_path: Path) -> None:
    ranks = rank({"a": [True, False], "b": [True]})
    write_ranks(ranks, tmp_path / "ranks.parquet")
    assert read_ranks(tmp_path / "ranks.parquet") == ranks
    (tmp_path / "ranks.parquet").write_bytes(b"PAR1")
    with pytest.raises(ProblemError, match=r"ranks\.parquet"):
        read_ranks(tmp_path / "ranks.parquet")
