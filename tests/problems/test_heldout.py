"""The held-out supply: enough for years, the same shares in every draw, no task twice."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from problems.schema import Problem
from problems.sources.compositional import FamilyConfig, name_of, part_of
from problems.sources.heldout import (
    LENGTH,
    SIZES,
    STOCK,
    StockEmpty,
    held_out,
    heldout_draw,
    heldout_tasks,
    permuted,
)
from problems.sources.operations import Kind

CONFIG = FamilyConfig(demonstrations=60, train=40, validation=20)
FIRST = st.integers(0, STOCK - 40)


def starts(problems: list[Problem]) -> Counter[str]:
    kinds = ("a text", "a list of words", "a list of integers", "an integer")
    return Counter(kind for problem in problems for kind in kinds if kind in problem.statement)


def test_two_draws_a_night_last_ten_years() -> None:
    assert STOCK // 400 >= 2 * 3650


@given(first=FIRST, second=FIRST)
@settings(max_examples=20, deadline=None)
def test_no_two_numbers_have_the_same_statement(first: int, second: int) -> None:
    tasks = {
        number: task.statement
        for start in (first, second)
        for number, task in enumerate(heldout_tasks(CONFIG, start, 40), start)
    }
    assert len(set(tasks.values())) == len(tasks)


@given(number=st.integers(1, STOCK // 100), seed=st.integers(0, 9))
@settings(max_examples=15, deadline=None)
def test_every_draw_has_the_same_share_of_each_start_and_length(number: int, seed: int) -> None:
    draw = heldout_draw(FamilyConfig(seed=seed), number, 80)
    assert starts(draw) == {
        "a text": 2,
        "a list of words": 10,
        "a list of integers": 62,
        "an integer": 6,
    }
    assert {problem.extra["operations"] for problem in draw} == {LENGTH}


@given(number=st.integers(1, STOCK // 400))
@settings(max_examples=5, deadline=None)
def test_a_draw_has_no_composition_twice(number: int) -> None:
    draw = heldout_draw(CONFIG, number, 400)
    assert len({problem.extra["composition"] for problem in draw}) == 400


def test_every_held_out_composition_is_held_out() -> None:
    assert {part_of(p.extra["composition"]) for p in heldout_draw(CONFIG, 3, 100)} == {"heldout"}


@pytest.mark.parametrize("kind", SIZES)
def test_each_row_of_a_start_is_another_composition(kind: Kind) -> None:
    assert len({name_of(each) for each in held_out(kind)}) == SIZES[kind]


@given(size=st.integers(1, 300), key=st.text(max_size=3))
@settings(max_examples=30, deadline=None)
def test_the_permutation_reaches_each_place_once(size: int, key: str) -> None:
    assert sorted(permuted(number, size, key) for number in range(size)) == list(range(size))


def test_a_draw_past_the_stock_names_the_setting() -> None:
    assert heldout_tasks(CONFIG, STOCK - 1, 1)
    with pytest.raises(StockEmpty, match=rf"family\.seed 1 .*{STOCK}.* 400 .*family\.seed"):
        heldout_tasks(CONFIG, STOCK - 399, 400)
