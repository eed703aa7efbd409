"""Whether a share of successes has fallen below its own earlier level, at every moment.

In: successes in the order of observation. Out: the level, the share since, and whether the fall is
shown. Traffic changes over time, so a fall is a reason to look or to train again, never a
comparison of two models (pairs.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evaluation.statistics.alpha_spending import level_at
from evaluation.statistics.hypothesis_tests import clopper_pearson
from evaluation.statistics.online.confidence_sequence import p_value


@dataclass(frozen=True)
class Fall:
    """Whether a share of successes has fallen below its own earlier level.

    level: share of the first `baseline` successes, the reference. since: share of the last block of
    later ones. shown: whether a block's mean is shown to be lower by more than is tolerated.
    """

    level: float
    since: float
    shown: bool


def fall_of(
    successes: Sequence[bool], baseline: int, tolerated: float, alpha: float
) -> Fall | None:
    """Return the fall from the level of the first `baseline` successes; None without later ones.

    The later ones are tested in blocks of twice the baseline, so that a long good time does not
    hide a fall. It is shown wrongly with a chance of at most alpha, however often one looks: half
    is for the level, whose lower limit is the reference (Clopper-Pearson, one look), half for all
    blocks together (alpha_spending.py), each with a confidence sequence.
    """
    if len(successes) <= baseline:
        return None
    first, later = successes[:baseline], successes[baseline:]
    lowest = clopper_pearson(sum(first), baseline, 1 - alpha).low  # one side: alpha / 2
    limit = 1 - lowest + tolerated
    failures = 1 - np.asarray(later, dtype=float)
    blocks = np.split(failures, range(2 * baseline, len(later), 2 * baseline))
    shown = limit < 1 and any(
        p_value(block, limit) <= level_at(alpha / 2, number)
        for number, block in enumerate(blocks, 1)
    )
    return Fall(sum(first) / baseline, 1 - float(blocks[-1].mean()), shown)
