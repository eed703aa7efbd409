"""Sticky assignment: a user gets the same arm each time, from a hash alone, without a table.

In: the salt of an experiment, a unit (a user, or a request without one), shares of the challengers.
Out: the unit's arm. Different salts give independent assignments.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from math import inf, log1p

CHAMPION = "champion"


def position(salt: str, unit: str) -> float:
    """Return the unit's place in [0, 1): uniform over units, fixed for a salt."""
    # The length keeps ("a", "bc") and ("ab", "c") apart.
    digest = hashlib.sha256(f"{len(salt)}:{salt}{unit}".encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64


def assigned(salt: str, unit: str, shares: Mapping[str, float]) -> str:
    """Return the unit's arm: a challenger's name, or "champion", which has the rest of the traffic.

    shares: challenger -> its share of the traffic; those at 0 get nobody. Each arm draws a waiting
    time for the unit, exponential with the arm's share as its rate, and the shortest wins. So a
    share that changes moves only as many units as it must: nobody leaves an arm whose share grows
    at least as much as that of every other one.
    Raises ValueError for shares below 0, or above 1 in sum.
    Source: Schindelhauer & Schomaker 2005, "Weighted Distributed Hash Tables", SPAA (the
    logarithmic method).
    """
    rest = 1 - sum(shares.values())
    if rest < -1e-9 or min(shares.values(), default=0.0) < 0:
        raise ValueError(f"shares must be in [0, 1], and their sum too, got {dict(shares)}")
    best, shortest = CHAMPION, inf
    for name, share in ((CHAMPION, rest), *shares.items()):
        if share > 0 and (wait := -log1p(-position(f"{salt}/{name}", unit)) / share) < shortest:
            best, shortest = name, wait
    return best
