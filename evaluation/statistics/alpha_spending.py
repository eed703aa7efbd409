"""Alpha spending: how much of alpha the next gate may use if the same tasks decide repeatedly.

In: the p-values of the gates so far. Out: the level of the next one. At a fixed level of 0.01, a
hundred gates without a gain promote one by chance; these rules keep the expected share of such
promotions (the false discovery rate) below the given rate. If each gate draws fresh tasks, a single
gate's level holds without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from pydantic import BaseModel, ConfigDict

Spending = Literal["fresh", "lord", "saffron"]
CANDIDATE = 0.5  # SAFFRON: a p-value up to this costs nothing
DECAY = 1.6  # exponent of the shares in which a level is spent, as in both papers' experiments


class Gate(BaseModel):
    """A gate that has decided: its benchmark, its p-value and its level."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_id: str
    benchmark: str
    benchmark_version: str
    p_value: float
    level: float

    @property
    def significant(self) -> bool:
        return self.p_value <= self.level


def next_level(spending: Spending, rate: float, earlier: Sequence[Gate]) -> float:
    """Return the level of the next gate after these, oldest first. rate: the false discovery rate
    to keep, in (0, 1).

    fresh    the rate itself, each time.
    lord     LORD++: half the rate is spent over time, and each significant gain adds to it (Ramdas
             et al. 2017, arXiv:1710.00499).
    saffron  like LORD, but gates with a p-value above `CANDIDATE` cost less (Ramdas et al. 2018,
             arXiv:1802.09098): better if most challengers look like an improvement.
    """
    if spending == "fresh":
        return rate
    start, now = rate / 2, len(earlier) + 1
    gains = [at for at, gate in enumerate(earlier, start=1) if gate.significant]
    # Gate after which an amount is added -> the amount (alpha wealth).
    wealth = [(0, start), *((at, rate - start if i == 0 else rate) for i, at in enumerate(gains))]
    if spending == "lord":
        return sum(amount * _share(now - at) for at, amount in wealth)
    cheap = [at for at, gate in enumerate(earlier, start=1) if gate.p_value <= CANDIDATE]
    level = sum(amount * _share(now - at - sum(at < c for c in cheap)) for at, amount in wealth)
    return min(CANDIDATE, (1 - CANDIDATE) * level)


def level_at(alpha: float, number: int) -> float:
    """Return the level of the number-th test, 1 for the first, so that all tests ever made together
    have a false alarm with a chance of at most alpha (Bonferroni with shares that sum to 1).

    Raises ValueError for a number below 1.
    """
    if number < 1:
        raise ValueError(f"`number` must be at least 1, got {number}")
    return alpha * _share(number)


def accumulated_risk(spending: Spending, rate: float, gates: int) -> str:
    """Return in one sentence the risk that so many gates have promoted without a gain."""
    total = f"{gates} gate{'' if gates == 1 else 's'} so far"
    if spending == "fresh":
        risk = 1 - (1 - rate) ** gates
        return f"{total}: the chance that one promoted by luck is at most {100 * risk:.1f} %"
    return f"{total}: at most {100 * rate:g} % of promotions are expected to be luck"


@lru_cache(maxsize=4096)
def _share(step: int) -> float:
    """Return the share of an amount that the step-th gate after it gets; all shares sum to 1."""
    from scipy.special import zeta

    return float(step**-DECAY / zeta(DECAY))
