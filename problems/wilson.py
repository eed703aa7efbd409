"""The interval of a share."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist


def wilson_bounds(passed: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the interval of a share, inside [0, 1] (Wilson 1927); all of it if n is 0."""
    if not n:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share, spread = passed / n, z * z / n
    middle = (share + spread / 2) / (1 + spread)
    half = sqrt(share * (1 - share) * spread + spread * spread / 4) / (1 + spread)
    # At the edges the formula gives 0 and 1, except for rounding.
    low = max(0.0, middle - half) if passed else 0.0
    return low, min(1.0, middle + half) if passed < n else 1.0
