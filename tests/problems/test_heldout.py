"""The held-out supply: no end, the same shares in every draw, no function that training has."""

from __future__ import annotations

from collections import Counter

import pytest

from problems.embedded.behaviour import behaviour, part_of
from problems.embedded.compositional import SHAPES, composition_of, generate
from problems.embedded.heldout import BLOCK, heldout_tasks
from problems.embedded.settings import FamilyConfig

CONFIG = FamilyConfig(demonstrations=60, train=40, validation=20)


@pytest.mark.parametrize(("number", "seed"), [(1, 0), (15_000_002, 9)])
def test_every_draw_has_the_same_share_of_each_start_and_length(number: int, seed: int) -> None:
    draw = heldout_tasks(FamilyConfig(seed=seed), (number - 1) * 80, 80)
    shapes = Counter(
        (operations[0].takes, len(operations)) for operations in map(composition_of, draw)
    )
    assert shapes == {shape: 2 * share for shape, share in SHAPES.items()}


@pytest.mark.parametrize(
    ("first", "more"),
    [(12_000_000_000, 3), pytest.param(BLOCK - 2, 4, marks=pytest.mark.slow)],
    ids=["in a block", "over the end of a block"],
)
def test_a_task_depends_on_its_number_alone(first: int, more: int) -> None:
    alone = heldout_tasks(CONFIG, first + more, 1)
    assert heldout_tasks(CONFIG, first, more + 1)[-1:] == alone


def test_numbers_have_ids_of_their_own() -> None:
    draw = heldout_tasks(CONFIG, 80, 40)
    assert [problem.problem_id for problem in draw] == [
        f"embedded/heldout/1/{number}" for number in range(80, 120)
    ]


def test_every_task_is_of_the_held_out_part() -> None:
    """The part follows from what a function computes, so no training has a held-out one."""
    assert {part_of(composition_of(p)) for p in heldout_tasks(CONFIG, 200, 100)} == {"heldout"}
    assert {part_of(composition_of(p)) for p in generate(CONFIG)} == {"training", "validation"}


def test_no_function_occurs_twice_in_a_draw() -> None:
    draw = heldout_tasks(CONFIG, 1200, 240)
    assert len({behaviour(composition_of(problem)) for problem in draw}) == 240
