"""False alarms of the regression sensor between two held-out draws, by simulation.

`python -m measurements.heldout_draws [pairs]`: 1,000 pairs of draws of 400 tasks at random places
of the stock, each through `evaluation.promotion.regression.regressed` with its alpha of 0.01. About
five minutes. A simulated model solves a task with the product of its chances for each operation,
times a factor for each operation beyond the second. The result of a composition is the same in all
its wordings. The last rows compare draw 1 with draws 2 to 26 of older homes, whose tasks have two
to four operations.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence

import numpy as np

from evaluation.promotion.regression import regressed
from evaluation.statistics.hypothesis_tests import wilson
from measurements.gate_error import card
from problems.sources.compositional import compositions, name_of, older_part_of
from problems.sources.heldout import STOCK, composition_of
from problems.sources.operations import OPERATIONS, Operation

TASKS, ALPHA, SEED = 400, 0.01, 1
PLACES = {operation.name: place for place, operation in enumerate(OPERATIONS)}
# name -> lowest and highest chance of an operation, factor for each operation beyond the second
MODELS = {"even": (0.85, 0.85, 1.0), "uneven": (0.4, 1.0, 1.0), "short": (0.9, 1.0, 0.65)}
Composition = tuple[Operation, ...]


class Model:
    """A simulated model: chances by operation and length, fixed by its name."""

    def __init__(self, name: str) -> None:
        low, high, self.factor = MODELS[name]
        self.name = name
        self.chances = np.random.default_rng(SEED).uniform(low, high, len(OPERATIONS))

    def solves(self, composition: Composition) -> bool:
        chance = self.factor ** (len(composition) - 2)
        for operation in composition:
            chance *= self.chances[PLACES[operation.name]]
        digest = hashlib.blake2b(f"{self.name}/{name_of(composition)}".encode(), digest_size=8)
        return bool(int.from_bytes(digest.digest()) / 2**64 < chance)


def row(
    supply: str, model: Model, pairs: Sequence[tuple[list[Composition], list[Composition]]]
) -> str:
    """Return a table row: how often `regressed` reports a regression of an unchanged model."""
    alarms, shares = 0, []
    for pair in pairs:
        first, second = (np.array([model.solves(task) for task in tasks]) for tasks in pair)
        shares += [first.mean(), second.mean()]
        alarms += regressed(card("champion", first), card("champion", second), ALPHA).fell
    low, high = wilson(alarms, len(pairs))
    rate = f"{alarms / len(pairs):.4f} ({low:.4f} to {high:.4f})"
    solved = f"{np.mean(shares):.3f} ({min(shares):.3f} to {max(shares):.3f})"
    return f"| {supply} | {model.name} | {solved} | {len(pairs)} | {alarms} | {rate} |"


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    rng = np.random.default_rng(SEED)
    numbers = rng.choice(STOCK // TASKS, (count, 2), replace=True)

    def draw(number: int) -> list[Composition]:
        first = number * TASKS
        return [composition_of(SEED, at)[0] for at in range(first, first + TASKS)]

    pairs = [(draw(int(a)), draw(int(b))) for a, b in numbers]
    older = list(compositions(SEED, "heldout", older_part_of))
    older_draws = [older[at : at + TASKS] for at in range(0, len(older) - TASKS, TASKS)]
    older_pairs = [(older_draws[0], later) for later in older_draws[1:]]
    print(f"{TASKS} tasks a draw, alpha {ALPHA:g}, stock {STOCK:,} tasks")
    print(
        "| supply | model | solved (lowest to highest) | pairs | alarms | share (95 % interval) |"
    )
    print("|---|---|---|---|---|---|")
    for name in MODELS:
        print(row("this", Model(name), pairs), flush=True)
    for name in MODELS:
        print(row("older", Model(name), older_pairs), flush=True)


if __name__ == "__main__":
    main()
