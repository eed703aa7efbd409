"""False alarms of the regression sensor between two held-out draws, by simulation.

`python -m measurements.heldout_draws [pairs]`: 1,000 pairs of draws of 400 tasks at random places
of the first ten million, each through `evaluation.promotion.regression.regressed` with its alpha of
0.01. A simulated model solves a task with the product of its chances for each operation, times a
factor for each operation beyond the second. The result of a function is the same in all its
wordings.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence

import numpy as np

from evaluation.promotion.regression import regressed
from evaluation.statistics.hypothesis_tests import wilson
from measurements.gate_error import card
from problems.embedded.compositional import FamilyConfig, composition_of
from problems.embedded.heldout import heldout_draw
from problems.embedded.operations import OPERATIONS
from problems.schema import Problem

TASKS, ALPHA, SEED, DRAWS = 400, 0.01, 1, 25_000
PLACES = {operation.name: place for place, operation in enumerate(OPERATIONS)}
# name -> lowest and highest chance of an operation, factor for each operation beyond the second
MODELS = {"even": (0.85, 0.85, 1.0), "uneven": (0.4, 1.0, 1.0), "short": (0.9, 1.0, 0.65)}


class Model:
    """A simulated model: chances by operation and length, fixed by its name."""

    def __init__(self, name: str) -> None:
        low, high, self.factor = MODELS[name]
        self.name = name
        self.chances = np.random.default_rng(SEED).uniform(low, high, len(OPERATIONS))

    def solves(self, problem: Problem) -> bool:
        operations = composition_of(problem)
        chance = self.factor ** (len(operations) - 2)
        for operation in operations:
            chance *= self.chances[PLACES[operation.name]]
        text = f"{self.name}/{problem.extra['cluster']}"
        digest = hashlib.blake2b(text.encode(), digest_size=8)
        return bool(int.from_bytes(digest.digest()) / 2**64 < chance)


def row(name: str, pairs: Sequence[tuple[list[Problem], list[Problem]]]) -> str:
    """Return a table row: how often `regressed` reports a regression of an unchanged model."""
    model, alarms, shares = Model(name), 0, []
    for pair in pairs:
        first, second = (np.array([model.solves(task) for task in tasks]) for tasks in pair)
        shares += [first.mean(), second.mean()]
        alarms += regressed(card("champion", first), card("champion", second), ALPHA).fell
    low, high = wilson(alarms, len(pairs))
    rate = f"{alarms / len(pairs):.4f} ({low:.4f} to {high:.4f})"
    solved = f"{np.mean(shares):.3f} ({min(shares):.3f} to {max(shares):.3f})"
    return f"| {name} | {solved} | {len(pairs)} | {alarms} | {rate} |"


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    config = FamilyConfig(seed=SEED)
    numbers = np.random.default_rng(SEED).integers(1, DRAWS, (count, 2))
    pairs = [
        (heldout_draw(config, int(a), TASKS), heldout_draw(config, int(b), TASKS))
        for a, b in numbers
    ]
    print(f"{TASKS} tasks a draw, alpha {ALPHA:g}")
    print("| model | solved (lowest to highest) | pairs | alarms | share (95 % interval) |")
    print("|---|---|---|---|---|")
    for name in MODELS:
        print(row(name, pairs), flush=True)


if __name__ == "__main__":
    main()
