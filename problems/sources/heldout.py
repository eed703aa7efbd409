"""The held-out supply of the embedded family: task number 0, 1, 2, ... without an end.

A task is a function that no training has (problems/sources/behaviour.py). Each is drawn from all of
them by its number, so any two draws are comparable: each 40 tasks in a row have the same shares of
shapes, and within a shape they are independent.
"""

from __future__ import annotations

import random
from functools import cache

from problems.schema import Problem
from problems.sources.behaviour import part_of
from problems.sources.compositional import SHAPES, FamilyConfig, compose, problem_of
from problems.sources.operations import Kind

PERIOD = sum(SHAPES.values())


def heldout_tasks(config: FamilyConfig, first: int, count: int) -> list[Problem]:
    """Return `count` held-out problems from number `first` on; the first number is 0."""
    return [_task(config, number) for number in range(first, first + count)]


def heldout_draw(config: FamilyConfig, number: int, count: int) -> list[Problem]:
    """Return draw `number` (1, 2, ...) of those that have `count` tasks each."""
    return heldout_tasks(config, (number - 1) * count, count)


def _task(config: FamilyConfig, number: int) -> Problem:
    start, length = places()[number % PERIOD]
    rng = random.Random(f"{config.seed}/heldout/{number}")
    while True:
        operations = compose(rng, start, length)
        if part_of(operations) == "heldout":
            id = f"{config.seed}/{number}"
            if problem := problem_of(operations, "heldout", config, id):
                return problem


@cache
def places() -> list[tuple[Kind, int]]:
    """Return start and length at each place of a period, each shape spread evenly."""
    return [
        shape
        for _, shape in sorted(
            ((rank + 0.5) / share, shape)
            for shape, share in SHAPES.items()
            for rank in range(share)
        )
    ]
