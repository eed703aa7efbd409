"""Draw a curve in a terminal, in braille: each character has two by four points."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

DOTS = (
    (0x40, 0x04, 0x02, 0x01),
    (0x80, 0x20, 0x10, 0x08),
)  # bits of the left and right column, from the bottom up
BLANK = 0x2800


def curve(values: Sequence[float], width: int, height: int) -> list[str]:
    """Return `height` lines of `width` characters. Values are interpolated over the width, or
    averaged if there are more values than points.
    """
    if not values:
        return [""] * height
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    columns = _resampled(values, 2 * width)
    grid = [[BLANK] * ((len(columns) + 1) // 2) for _ in range(height)]
    before: int | None = None
    for x, value in enumerate(columns):
        y = round((value - low) / span * (4 * height - 1))
        for between in range(
            min(y, before if before is not None else y),
            max(y, before if before is not None else y) + 1,
        ):
            # The points are joined to the one before.
            grid[height - 1 - between // 4][x // 2] |= DOTS[x % 2][between % 4]
        before = y
    return ["".join(map(chr, row)) for row in grid]


def _resampled(values: Sequence[float], points: int) -> list[float]:
    if len(values) >= points:
        cuts = [round(i * len(values) / points) for i in range(points + 1)]
        return [sum(values[a:b]) / (b - a) for a, b in pairwise(cuts)]
    steps = (len(values) - 1) / (points - 1)
    return [_between(values, i * steps) for i in range(points)]


def _between(values: Sequence[float], at: float) -> float:
    left = min(int(at), len(values) - 1)
    right = min(left + 1, len(values) - 1)
    return values[left] + (values[right] - values[left]) * (at - left)
