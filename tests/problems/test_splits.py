"""Validation and held-out problems where the sources name none."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from problems.dataset.splits import HELDOUT, VALIDATION, with_parts
from problems.embedded.compositional import generate
from problems.embedded.settings import FamilyConfig
from problems.schema import Problem, Split

PROBLEM = next(each for each in generate(FamilyConfig(demonstrations=1, train=1, validation=1)))


def trained(statements: list[str]) -> list[Problem]:
    return [
        replace(PROBLEM, problem_id=f"mine/{number}", statement=statement, split="train")
        for number, statement in enumerate(statements)
    ]


BOTH = [VALIDATION, HELDOUT]


def part_of(problems: list[Problem], split: str) -> set[str]:
    return {each.problem_id for each in with_parts(problems, BOTH) if each.split == split}


statements = st.lists(st.text("ab ", min_size=1, max_size=6).map(lambda text: f"a{text}"))


@given(statements)
def test_equal_statements_share_a_split(texts: list[str]) -> None:
    problems = with_parts(trained(texts), BOTH)
    split_of: dict[str, set[str]] = {}
    for problem in problems:
        split_of.setdefault(" ".join(problem.statement.split()), set()).add(problem.split)
    assert all(len(splits) == 1 for splits in split_of.values())
    assert [each.problem_id for each in problems] == [each.problem_id for each in trained(texts)]


@given(st.integers(0, 400))
def test_training_keeps_at_least_half(count: int) -> None:
    problems = trained([str(number) for number in range(count)])
    assert len(part_of(problems, "train")) >= count / 2


@pytest.mark.parametrize(("split", "expected"), [("validation", 20), ("heldout", 40)])
def test_a_part_has_its_share(split: str, expected: int) -> None:
    assert len(part_of(trained([str(number) for number in range(400)]), split)) == expected


def test_more_problems_do_not_move_most_of_the_part() -> None:
    texts = [str(number) for number in range(400)]
    first = part_of(trained(texts[:380]), "validation")
    assert len(first & part_of(trained(texts), "validation")) >= len(first) - 3


@pytest.mark.parametrize("split", ["validation", "heldout"])
def test_a_named_part_stays(split: Split) -> None:
    problems = trained([str(number) for number in range(40)])
    named = [replace(problems[0], split=split), *problems[1:]]
    assert part_of(named, split) == {problems[0].problem_id}


def test_gated_problems_stay() -> None:
    gated = [replace(each, gated=True) for each in trained(["one", "two", "three"])]
    assert with_parts(gated, BOTH) == gated
