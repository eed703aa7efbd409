"""Reward for getting better on the way: pure arithmetic on the shares of visible tests that the programs of a conversation pass."""

from __future__ import annotations

from collections.abc import Sequence

FADES = 0.5  # what an improvement is worth a turn later


def improvements(shares: Sequence[float]) -> list[float]:
    """What each turn adds to the best share before it, an improvement a turn later worth half. Before the first nothing passes.

    So their sum is at most the best share, and a poor first program, written to be mended, only loses: `improvements([1])` sums to 1,
    `improvements([0, 1])` to 0.5. Were the first one paid nothing, the sums would be 0 and 0.5. A fall costs nothing: the last answer's own reward
    tells it.
    """
    best, found = 0.0, []
    for turn, share in enumerate(shares):
        found.append(max(0.0, share - best) * FADES**turn)
        best = max(best, share)
    return found
