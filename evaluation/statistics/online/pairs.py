"""Pairs of requests that both arms served at about the same time.

In: the arm and the value of each observation, in the order of exposure. Out: a difference for each
pair, challenger minus champion. A rise of the load or a change of the traffic hits both sides of a
pair, so it cancels. Pooled means of the arms would confuse it with the challenger as soon as the
challenger's share changes (Simpson's paradox).

A pair has one observation of the rarer arm and `ratio` of the other, so no observation is wasted at
any share: at 1 % one challenger's value meets the mean of 99 champion's values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluation.statistics.hypothesis_tests import Floats

Booleans = npt.NDArray[np.bool_]


class Pairs(NamedTuple):
    """differences: challenger minus champion. closed: position of each pair's last observation."""

    differences: Floats
    closed: npt.NDArray[np.int64]


def concurrent_pairs(
    challenger: Sequence[bool] | Booleans, values: Sequence[float] | Floats, share: float
) -> Pairs:
    """Pair the observations of one step of a rollout, first with first.

    challenger: arm of each observation; share: of the challenger in this step, in (0, 1).
    The i-th observation of the rarer arm is paired with the mean of the i-th `ratio` of the other
    one. Membership depends on the assignment alone, never on a value, which keeps a pair's
    expectation at the difference of the means (arXiv:2010.09686 needs nothing else).
    Raises ValueError for a share outside (0, 1) or different lengths.
    """
    if not 0 < share < 1:
        raise ValueError(f"`share` must be in (0, 1), got {share}: nothing to compare with")
    arms, table = np.asarray(challenger, dtype=bool), np.asarray(values, dtype=float)
    if len(arms) != len(table):
        raise ValueError(f"{len(arms)} arms for {len(table)} values")
    rare = arms if share <= 0.5 else ~arms
    ratio = max(1, round(1 / min(share, 1 - share)) - 1)
    one, many = np.flatnonzero(rare), np.flatnonzero(~rare)
    count = min(len(one), len(many) // ratio)
    one, groups = one[:count], many[: count * ratio].reshape(count, ratio)
    differences = table[one] - table[groups].mean(1)
    closed = np.maximum(one, groups[:, -1]) if count else one
    return Pairs(differences if share <= 0.5 else -differences, closed)


def first_of_each(units: Sequence[str], challenger: Sequence[bool] | Booleans) -> Booleans:
    """Return which observations count: the first of each unit in each arm.

    A unit is what is assigned: a user, or a request without one. A user's requests resemble each
    other, so a hundred of them are not a hundred observations.
    """
    seen: set[tuple[str, bool]] = set()
    counts = np.zeros(len(units), dtype=bool)
    for at, key in enumerate(zip(units, map(bool, challenger), strict=True)):
        counts[at] = key not in seen
        seen.add(key)
    return counts
