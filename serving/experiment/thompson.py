"""Thompson sampling: more traffic for arms that look better. For allocation only.

Shares that follow the outcomes bias every mean, so no decision may be taken from them: compare arms
by pairs within steps of a constant share (`evaluation.statistics.online.pairs`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

DRAWS = 10_000


def thompson_shares(
    counts: Mapping[str, tuple[int, int]], *, floor: float = 0.05, seed: int = 0
) -> dict[str, float]:
    """Return each arm's share of the next requests: its posterior chance to be the best one.

    counts: arm -> (successes, failures); the posterior is Beta(1 + successes, 1 + failures).
    floor: the least share of an arm, so that none is abandoned by bad luck. Shares sum to 1.
    Raises ValueError if the floors exceed 1.
    Source: Thompson 1933, Biometrika 25:285; Chapelle & Li 2011, NeurIPS.
    """
    if not counts or floor * len(counts) > 1:
        raise ValueError(f"{len(counts)} arms with at least {floor:g} each: lower `floor`")
    rng = np.random.default_rng(seed)
    table = np.array(list(counts.values()), dtype=float)
    best = rng.beta(table[:, 0] + 1, table[:, 1] + 1, (DRAWS, len(counts))).argmax(1)
    chances = np.bincount(best, minlength=len(counts)) / DRAWS
    rest = 1 - floor * len(counts)
    return {name: floor + rest * float(c) for name, c in zip(counts, chances, strict=True)}
