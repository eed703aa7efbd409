"""The held-out supply of the embedded family: STOCK tasks, each used by one gate or rescore.

A task is a composition of four operations that no training has, with one of its wordings. Each 40
tasks in a row have the same shares of texts, words, numbers and single numbers, so any two draws
are comparable. Within a share, each composition occurs once before any occurs again in other words.
A seeded permutation orders them.
"""

from __future__ import annotations

import hashlib
import random
from functools import cache
from itertools import islice

from problems.schema import Problem
from problems.sources.compositional import (
    LONGEST,
    OLDER_OPENINGS,
    OPENINGS,
    FamilyConfig,
    composed,
    compositions,
    name_of,
    older_part_of,
    part_of,
    problem_of,
)
from problems.sources.operations import OPERATIONS, Kind, Operation

LENGTH = LONGEST
# Tasks of each 40 that start from this kind; texts are the scarcest.
SHARES: dict[Kind, int] = {"text": 1, "words": 5, "nums": 31, "num": 3}
# Held-out compositions that start from this kind; a test counts them.
SIZES: dict[Kind, int] = {"text": 873, "words": 4768, "nums": 30051, "num": 2779}
PERIOD = sum(SHARES.values())


class StockEmpty(ValueError):
    """A draw past the last held-out task. The message is one line and names the setting."""


def check_stock(seed: int, first: int, count: int) -> None:
    """Raise StockEmpty if the stock has no `count` tasks from number `first` on."""
    if first + count > STOCK:
        raise StockEmpty(
            f"the held-out stock of family.seed {seed} ends after {STOCK} tasks, and {count} from "
            f"number {first} on are needed: set family.seed to a new number"
        )


def heldout_tasks(config: FamilyConfig, first: int, count: int) -> list[Problem]:
    """Return `count` held-out problems from number `first` on; the first number is 0.

    Two numbers differ in composition or wording. Raises StockEmpty past the last task.
    """
    check_stock(config.seed, first, count)
    return [_task(config, number) for number in range(first, first + count)]


def heldout_draw(config: FamilyConfig, number: int, count: int) -> list[Problem]:
    """Return draw `number` (1, 2, ...) of those that have `count` tasks each."""
    return heldout_tasks(config, (number - 1) * count, count)


def older_draw(config: FamilyConfig, number: int, count: int) -> list[Problem]:
    """Return a draw as older homes used it, of two to four operations, to reproduce a score."""
    stream = compositions(config.seed, "heldout", older_part_of)
    return [
        composed(operations, "heldout", config, OLDER_OPENINGS)
        for operations in islice(stream, (number - 1) * count, number * count)
    ]


def composition_of(seed: int, number: int) -> tuple[tuple[Operation, ...], int]:
    """Return the composition of task `number`, and how often it occurred before this task."""
    period, place = divmod(number, PERIOD)
    kind, rank = _places()[place]
    size = SIZES[kind]
    turn, row = divmod(period * SHARES[kind] + rank, size)
    return held_out(kind)[permuted(row, size, f"{seed}/{kind}")], turn


def permuted(number: int, size: int, key: str) -> int:
    """Return the place of `number` in a pseudo-random permutation of range(size).

    A Feistel network of four rounds over the next even power of two, repeated until the result is
    below `size` (Black and Rogaway 2002, cycle walking).
    """
    half = (max(size - 1, 1).bit_length() + 1) // 2
    mask = (1 << half) - 1
    while True:
        left, right = number >> half, number & mask
        for turn in range(4):
            digest = hashlib.blake2b(f"{key}/{turn}/{right}".encode(), digest_size=8).digest()
            left, right = right, left ^ (int.from_bytes(digest) & mask)
        number = left << half | right
        if number < size:
            return number


def _task(config: FamilyConfig, number: int) -> Problem:
    operations, turn = composition_of(config.seed, number)
    choice = permuted(turn, _wordings(operations), f"{config.seed}/{name_of(operations)}")
    choice, opening = divmod(choice, len(OPENINGS))
    steps = []
    for operation in operations:
        choice, wording = divmod(choice, len(operation.wordings))
        steps.append(operation.wordings[wording])
    rng = random.Random(f"{config.seed}/heldout/{number}")
    id = f"{config.seed}/{number}"
    return problem_of(operations, OPENINGS[opening], steps, rng, "heldout", id, config)


@cache
def _places() -> list[tuple[Kind, int]]:
    """Return the kind at each place of a period, spread evenly, and its rank there."""
    places = [(kind, rank) for kind, share in SHARES.items() for rank in range(share)]
    return sorted(places, key=lambda place: (place[1] + 0.5) / SHARES[place[0]])


def _next(kind: Kind, last: Operation | None) -> list[Operation]:
    """Return the operations that can follow `last`: on its result, and not the same again."""
    return [operation for operation in OPERATIONS if operation.takes == kind and operation != last]


@cache
def held_out(kind: Kind) -> list[tuple[Operation, ...]]:
    """Return the held-out compositions that start from this kind, always in the same order."""
    composed: list[tuple[Operation, ...]] = [(each,) for each in _next(kind, None)]
    for _ in range(LENGTH - 1):
        composed = [
            (*operations, operation)
            for operations in composed
            for operation in _next(operations[-1].gives, operations[-1])
        ]
    return [each for each in composed if part_of(name_of(each)) == "heldout"]


def _wordings(operations: tuple[Operation, ...]) -> int:
    wordings = len(OPENINGS)
    for operation in operations:
        wordings *= len(operation.wordings)
    return wordings


def _stock() -> int:
    """Return the tasks until the first kind ends; every operation has as many wordings."""
    least = min(len(operation.wordings) for operation in OPERATIONS)
    wordings = len(OPENINGS) * int(least**LENGTH)
    turns = (SIZES[kind] * wordings // share for kind, share in SHARES.items())
    return PERIOD * min(turns)


STOCK = _stock()
