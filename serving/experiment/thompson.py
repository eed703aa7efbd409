"""Thompson sampling: how an experiment divides its traffic. It explores, and decides nothing.

In: how often each arm succeeded. Out: shares. What an experiment shows about an arm comes from
pairs of requests of the same step (pairs.py, confidence_sequence.py), whose shares were fixed
before it. So given everything before, a pair's expected difference is that of the arms, whatever
rule chose the shares. The capital of a bettor against "no difference" is then a nonnegative
supermartingale, and Ville's inequality bounds the chance that it is ever large.

Source: Thompson 1933, Biometrika 25:285. The inference: Ville 1939, Etude critique de la notion de
collectif, in the form of Waudby-Smith & Ramdas 2024, arXiv:2010.09686 (values whose mean given the
past is the one in question).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

POINTS = 2001  # of the grid over [0, 1]


@dataclass(frozen=True)
class Successes:
    """total: sum of the values, each in [0, 1]."""

    count: int
    total: float


def thompson_shares(arms: Mapping[int, Successes], least: float) -> dict[int, float]:
    """Return each arm's share: `least`, and the rest by the probability that the arm is the best.

    The means have Beta(1 + successes, 1 + failures) posteriors. The probability is the integral of
    the arm's density times the others' distribution functions, so it needs no random numbers, and
    several controllers compute the same. Raises ValueError unless the floors fit into 1.
    """
    if not 0 < least * len(arms) <= 1 + 1e-9:
        raise ValueError(f"{len(arms)} arms with a share of at least {least:g} each exceed 1")
    best = probability_of_best(arms)
    free = max(0.0, 1 - least * len(arms))
    return {arm: round(least + free * chance, 4) for arm, chance in best.items()}


def probability_of_best(arms: Mapping[int, Successes]) -> dict[int, float]:
    """Return the posterior probability that an arm has the largest mean."""
    from scipy.stats import beta

    grid = np.linspace(0, 1, POINTS)
    steps = np.array(
        [beta.cdf(grid, 1 + arm.total, 1 + arm.count - arm.total) for arm in arms.values()]
    )
    middle = (steps[:, 1:] + steps[:, :-1]) / 2
    chances = np.array(
        [(np.diff(own) * np.delete(middle, at, 0).prod(0)).sum() for at, own in enumerate(steps)]
    )
    return {arm: float(chance) for arm, chance in zip(arms, chances / chances.sum(), strict=True)}
