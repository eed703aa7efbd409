"""Gated tasks are recognized by the package alone, without their data among the sources."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from problems.cleaning.curation import curate
from problems.cleaning.fingerprints import known_task
from problems.schema import Problem
from problems.sources.registry import load

NO_TESTS = ({"source": "def check(candidate):\n    assert candidate(0) == 0\n"},)
STATEMENTS, SOLUTIONS, TESTS = 150, 100, 110
OTHER = "Say something that no benchmark ever asked anybody to say."


def own(task: Problem, **changes: Any) -> Problem:
    """Return the task as a row of the user's, without doctests and under another name."""
    number = task.problem_id.rpartition("/")[2]
    statement = re.split(r"\n\s*>>>", task.statement)[0]
    fields: dict[str, Any] = {
        "problem_id": f"mine/x{number}",
        "source": "mine",
        "gated": False,
        "extra": {},
    }
    return replace(task, **fields | {"statement": statement, "licence": "MIT"} | changes)


@pytest.fixture
def humaneval(data: Callable[[str], Path]) -> list[Problem]:
    return load("humaneval", data("humaneval")).problems


# Of 164 tasks: short statements and programs, and tests of short values, are not characteristic.
@pytest.mark.parametrize(
    ("other", "least"),
    [
        ({"tests": NO_TESTS, "solutions": ()}, STATEMENTS),
        ({"statement": OTHER, "tests": NO_TESTS}, SOLUTIONS),
        ({"statement": OTHER, "solutions": ()}, TESTS),
    ],
)
def test_one_part_of_a_gated_task_is_enough(
    humaneval: list[Problem], other: dict[str, Any], least: int
) -> None:
    matches = [known_task(own(task, **other)) for task in humaneval]
    assert sum(match is not None for match in matches) >= least


def test_copies_without_doctests_are_removed_where_no_benchmark_was_added(
    humaneval: list[Problem],
) -> None:
    assert not curate([own(task) for task in humaneval[:6]], []).problems
