"""What a composition of the embedded family computes: its outputs on a fixed set of inputs.

Two compositions with equal outputs are the same function, however they are worded. The family is
divided by this, so that no held-out function is trained on. A composition is sound if it is not
constant, no step of it is idle, and tests exist that refuse each of its typical mistakes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import combinations
from typing import Any

from artifacts.hashing import hash_text
from problems.embedded.operations import Kind, Operation
from sandbox.styles.source_text import literal

Composition = tuple[Operation, ...]

INPUTS = 32  # of the fixed set
MIN_OUTPUTS = 4  # distinct expected values among the tests
TESTS, DRAWS = 10, 8  # tests of a problem; draws of tests until they refuse every variant
LONGEST = 160  # characters of an output; a longer one belongs to a step that explodes
HELDOUT_SHARE, VALIDATION_SHARE = 30, 8  # percent of all functions
WORDS = [
    "sun", "tree", "a", "river", "of", "cloud", "moon", "tea", "light", "or", "stone", "bird",
    "level", "noon", "is", "wind",
]  # fmt: skip


def inputs(kind: Kind, rng: random.Random, count: int) -> list[Any]:
    """Return `count` values of this kind, three edge cases first. Raises ValueError for a table."""

    def words(low: int, high: int) -> list[str]:
        picked = rng.choices(WORDS, k=rng.randint(low, high))
        return [*picked, rng.choice(picked)]

    def number() -> int:
        return rng.choice((rng.randint(-50, 99), rng.randint(100, 5000)))

    def text() -> str:
        return " ".join(w.capitalize() if rng.random() < 0.3 else w for w in words(3, 5))

    edges: list[Any]
    match kind:
        case "nums":
            edges = [[], [3, 5, 3, 5, -3, 0], [rng.randint(-9, 9)]]
            return edges + [
                [rng.randint(-9, 15) for _ in range(rng.randint(3, 8))] for _ in range(count - 3)
            ]
        case "num":
            edges = [0, -rng.randint(1, 9), -rng.randint(100, 999)]
            return edges + [number() for _ in range(count - 3)]
        case "words":
            edges = [[], ["tree", "tea", "river", "tree"], words(1, 1)]
            return edges + [words(2, 6) for _ in range(count - 3)]
        case "text":
            return ["", "  Tea  or tea", "Level noon", *(text() for _ in range(count - 3))]
    raise ValueError(f"no problem starts from {kind}")


def outputs(operations: Composition, values: Sequence[Any], slip: int = -1) -> list[Any]:
    """Return the result for each value; an exception is its own name. slip: place of an operation
    whose typical mistake is run in its place.
    """
    steps = [each.run_slip if i == slip else each.run for i, each in enumerate(operations)]
    results = []
    for value in values:
        try:
            for step in steps:
                value = step(value)
        except (ValueError, TypeError, IndexError) as error:
            value = type(error)
        results.append(value)
    return results


@lru_cache(4096)
def behaviour(operations: Composition) -> str:
    """Return 16 hex digits that stand for the function."""
    text = "\n".join(map(_canonical, outputs(operations, _fixed(operations[0].takes))))
    return hash_text(text)[:16]


def part_of(operations: Composition) -> str:
    """Return "heldout", "validation" or "training": a pure function of the behaviour."""
    bucket = int(behaviour(operations), 16) % 100
    if bucket < HELDOUT_SHARE:
        return "heldout"
    return "validation" if bucket < HELDOUT_SHARE + VALIDATION_SHARE else "training"


def tests_of(operations: Composition, rng: random.Random) -> list[dict[str, Any]] | None:
    """Return tests that refuse every variant of the composition; None if it is not sound.

    Variants are the composition without some steps in a row, where the rest fits together, and with
    the typical mistake of one.
    """
    for _ in range(DRAWS):
        values = inputs(operations[0].takes, rng, TESTS)
        expected = outputs(operations, values)
        texts = [*map(_canonical, expected)]
        if any(isinstance(each, type) for each in expected) or max(map(len, texts)) > LONGEST:
            return None
        if len(set(texts)) < MIN_OUTPUTS:
            continue
        if all([*map(_canonical, variant)] != texts for variant in _variants(operations, values)):
            return [
                {"args": [value], "kwargs": {}, "expected": result}
                for value, result in zip(values, expected, strict=True)
            ]
    return None


def _variants(operations: Composition, values: Sequence[Any]) -> Iterator[list[Any]]:
    for place, operation in enumerate(operations):
        if operation.slip:
            yield outputs(operations, values, place)
    for first, last in combinations(range(len(operations) + 1), 2):
        if operations[first].takes == operations[last - 1].gives:
            yield outputs(operations[:first] + operations[last:], values)


def _canonical(value: Any) -> str:
    """Return the value as text; a table's order does not count."""
    return literal(sorted(value.items(), key=repr) if isinstance(value, dict) else value)


@cache
def _fixed(kind: Kind) -> tuple[Any, ...]:
    return tuple(inputs(kind, random.Random(f"fixed/{kind}"), INPUTS))
