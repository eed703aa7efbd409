"""Reward shaping for improvements within a conversation, from the share of visible tests passed."""

from __future__ import annotations

from collections.abc import Sequence

FADES = 0.5  # factor on an improvement per turn of delay


def improvements(shares: Sequence[float]) -> list[float]:
    """Return each turn's improvement over the best share before it, halved for every turn of delay.

    The share before the first turn is 0. The sum is at most the best share, and a deliberately poor
    first program only loses: `improvements([1])` sums to 1, `improvements([0, 1])` to 0.5. Without
    credit for the first program, the sums would be 0 and 0.5. A decline costs nothing here, because
    the last program's own reward covers it.
    """
    best, gains = 0.0, []
    for turn, share in enumerate(shares):
        gains.append(max(0.0, share - best) * FADES**turn)
        best = max(best, share)
    return gains
