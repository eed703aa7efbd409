"""The held-out supply: no end, the same shares in every draw, no function that training has."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from problems.embedded.behaviour import behaviour, part_of
from problems.embedded.compositional import SHAPES, FamilyConfig, composition_of, generate
from problems.embedded.heldout import heldout_draw, heldout_tasks

CONFIG = FamilyConfig(demonstrations=60, train=40, validation=20)


@pytest.mark.slow
@given(number=st.integers(1, 10**9), seed=st.integers(0, 9))
@settings(max_examples=4, deadline=None)
def test_every_draw_has_the_same_share_of_each_start_and_length(number: int, seed: int) -> None:
    draw = heldout_draw(FamilyConfig(seed=seed), number, 80)
    shapes = Counter(
        (operations[0].takes, len(operations)) for operations in map(composition_of, draw)
    )
    assert shapes == {shape: 2 * share for shape, share in SHAPES.items()}


@pytest.mark.slow
@given(first=st.integers(0, 10**9), more=st.integers(1, 5))
@settings(max_examples=4, deadline=None)
def test_a_task_depends_on_its_number_alone(first: int, more: int) -> None:
    alone = heldout_tasks(CONFIG, first + more, 1)
    assert heldout_tasks(CONFIG, first, more + 1)[-1:] == alone


def test_numbers_have_ids_of_their_own() -> None:
    draw = heldout_draw(CONFIG, 3, 40)
    assert [problem.problem_id for problem in draw] == [
        f"embedded/heldout/1/{number}" for number in range(80, 120)
    ]


@pytest.mark.slow
def test_no_held_out_function_is_trained_on() -> None:
    """A function is what it computes: another order or wording of the same one counts too."""
    trained = {
        behaviour(composition_of(problem))
        for problem in generate(FamilyConfig(demonstrations=1600, train=400))
    }
    draws = [*heldout_draw(FamilyConfig(), 1, 400), *heldout_draw(FamilyConfig(), 900, 400)]
    assert not trained & {behaviour(composition_of(problem)) for problem in draws}


def test_every_task_is_of_the_held_out_part() -> None:
    assert {part_of(composition_of(p)) for p in heldout_draw(CONFIG, 3, 100)} == {"heldout"}
    assert {part_of(composition_of(p)) for p in generate(CONFIG)} == {"training", "validation"}


@pytest.mark.slow
def test_no_function_occurs_twice_in_a_draw() -> None:
    draw = heldout_draw(CONFIG, 2, 1200)
    assert len({behaviour(composition_of(problem)) for problem in draw}) == 1200
