"""The interval of a share."""

from __future__ import annotations

from math import sqrt

Z = 1.959964  # 95 % of the normal distribution


def wilson(passed: int, n: int) -> tuple[float, float]:
    """Return the 95 % interval of a share, inside [0, 1] (Wilson 1927); all of it if n is 0."""
    if not n:
        return 0.0, 1.0
    share, spread = passed / n, Z * Z / n
    middle, half = (
        (share + spread / 2) / (1 + spread),
        sqrt(share * (1 - share) * spread + spread * spread / 4) / (1 + spread),
    )
    return max(0.0, middle - half), min(1.0, middle + half)
