"""Sticky assignment: a user gets the same arm each time, from a hash alone, without a table.

In: the salt of an experiment, a unit (a user, or a request without one), shares of the challengers.
Out: the unit's arm. Different salts give independent assignments.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

CHAMPION = "champion"


def position(salt: str, unit: str) -> float:
    """Return the unit's place in [0, 1): uniform over units, fixed for a salt."""
    # The length keeps ("a", "bc") and ("ab", "c") apart.
    digest = hashlib.sha256(f"{len(salt)}:{salt}{unit}".encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64


def assigned(salt: str, unit: str, shares: Mapping[str, float]) -> str:
    """Return the unit's arm: a challenger's name, or "champion".

    shares: challenger -> its share of the traffic, always the same challengers in the same order,
    those at 0 too. The i-th of k challengers owns the places from i / k on. So its share can grow
    to 1 / k, nobody leaves a challenger that grows, and no unit moves between challengers.
    Raises ValueError for a share outside [0, 1 / k].
    """
    place = position(salt, unit) * len(shares)
    for number, (name, share) in enumerate(shares.items()):
        width = share * len(shares)
        if not 0 <= width <= 1 + 1e-12:
            raise ValueError(
                f"the share of {name} must be in [0, {1 / len(shares):g}] with {len(shares)} "
                f"challengers, got {share:g}"
            )
        if number <= place < number + width:
            return name
    return CHAMPION
