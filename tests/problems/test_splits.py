"""Validation problems where the sources name none."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from problems.dataset.splits import MAX_VALIDATION, MIN_VALIDATION, with_validation
from problems.embedded.compositional import FamilyConfig, generate
from problems.schema import Problem

PROBLEM = next(each for each in generate(FamilyConfig(demonstrations=1, train=1, validation=1)))


def trained(statements: list[str]) -> list[Problem]:
    return [
        replace(PROBLEM, problem_id=f"mine/{number}", statement=statement, split="train")
        for number, statement in enumerate(statements)
    ]


def validation_of(problems: list[Problem]) -> set[str]:
    return {each.problem_id for each in with_validation(problems) if each.split == "validation"}


statements = st.lists(st.text("ab ", min_size=1, max_size=6).map(lambda text: f"a{text}"))


@given(statements)
def test_equal_statements_share_a_split(texts: list[str]) -> None:
    problems = with_validation(trained(texts))
    split_of: dict[str, set[str]] = {}
    for problem in problems:
        split_of.setdefault(" ".join(problem.statement.split()), set()).add(problem.split)
    assert all(len(splits) == 1 for splits in split_of.values())
    assert [each.problem_id for each in problems] == [each.problem_id for each in trained(texts)]


@given(st.integers(0, 400))
def test_a_twentieth_or_eight_is_taken_and_training_keeps_half(count: int) -> None:
    texts = [str(number) for number in range(count)]
    expected = min(max(count // 20, MIN_VALIDATION), count // 2)
    assert len(validation_of(trained(texts))) == expected <= MAX_VALIDATION


def test_more_problems_do_not_move_most_of_the_part() -> None:
    texts = [str(number) for number in range(400)]
    first, second = validation_of(trained(texts[:380])), validation_of(trained(texts))
    assert len(first & second) >= len(first) - 3


def test_a_named_part_and_gated_problems_stay() -> None:
    problems = trained(["one", "two", "three"])
    named = [replace(problems[0], split="validation"), *problems[1:]]
    assert with_validation(named) == named
    gated = [replace(each, gated=True) for each in problems]
    assert with_validation(gated) == gated
