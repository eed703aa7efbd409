"""The held-out supply of the embedded family: task number 0, 1, 2, ... without an end.

A task is a function that no training has (problems/embedded/behaviour.py), drawn by its number from
all of them. Each 40 tasks in a row have the same shares of shapes, so any two draws are comparable.
No function occurs twice in a block of 1,200 tasks, so the tasks of a gate are not related.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from itertools import islice

from problems.embedded.behaviour import Composition, behaviour, part_of
from problems.embedded.compositional import SHAPES, compose, problem_of, tests_for
from problems.embedded.operations import Kind
from problems.embedded.settings import FamilyConfig
from problems.schema import Problem

PERIOD = sum(SHAPES.values())
BLOCK = 30 * PERIOD


def heldout_tasks(config: FamilyConfig, first: int, count: int) -> list[Problem]:
    """Return `count` held-out problems from number `first` on; the first number is 0."""
    tasks: list[Problem] = []
    while len(tasks) < count:
        number = first + len(tasks)
        block, place = divmod(number, BLOCK)
        rest = islice(_block(config.seed, block), place, place + count - len(tasks))
        tasks += [
            problem_of(operations, "heldout", config, f"{config.seed}/{each}")
            for each, operations in enumerate(rest, number)
        ]
    return tasks


def _block(seed: int, block: int) -> Iterator[Composition]:
    seen = set[str]()
    for place in range(BLOCK):
        start, length = places()[place % PERIOD]
        rng = random.Random(f"{seed}/heldout/{block * BLOCK + place}")
        while True:
            operations = compose(rng, start, length)
            if (
                part_of(operations) == "heldout"
                and (key := behaviour(operations)) not in seen
                and tests_for(operations, seed)
            ):
                break
        seen.add(key)
        yield operations


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
