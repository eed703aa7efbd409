"""A profile's benchmarks are guarded by fingerprints, or by the tasks that were added."""

from __future__ import annotations

import pytest

from evaluation.benchmarks.registry import check_guards
from problems.columns import ProblemError


def test_a_gate_that_no_data_is_compared_with_is_refused() -> None:
    with pytest.raises(ProblemError, match="livecodebench"):
        check_guards([], "livecodebench", [])
    assert check_guards([], "livecodebench", ["livecodebench"]) == []


def test_other_benchmarks_without_guards_are_named() -> None:
    names = ["humaneval", "mbpp+", "livecodebench", "mine.yaml"]
    assert check_guards(names, "humaneval", []) == ["livecodebench"]
