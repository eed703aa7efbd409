"""Sample-ratio mismatch: whether the arms got the traffic that they were assigned.

A mismatch means that requests were lost or counted in one arm only, and then no other result of the
experiment can be trusted.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, lgamma, log

CONCENTRATION = 100.0  # of the prior: the mixture looks for shares about 5 points from the assigned


def sample_ratio_p_value(
    steps: Sequence[tuple[Sequence[int], Sequence[float]]], concentration: float = CONCENTRATION
) -> float:
    """Return an always-valid p-value of "every unit was assigned with these shares".

    steps: for each step of a release the units that each arm got, and the arms' shares, which sum
    to 1 and are above 0. The capital of a step is the Dirichlet-multinomial likelihood of the
    counts over their likelihood at the shares, with prior weights concentration * share:
    B(a + n) / B(a) / product of share**n. Steps multiply. The p-value is 1 / the capital.
    Raises ValueError for other shares.
    Source: Lindon & Malek 2022, "Anytime-Valid Inference for Multinomial Count Data", NeurIPS,
    arXiv:2011.03567.
    """
    total = 0.0
    for counts, shares in steps:
        if min(shares) <= 0 or abs(sum(shares) - 1) > 1e-9 or len(shares) != len(counts):
            raise ValueError(f"shares must be above 0 and sum to 1, one a count, got {shares}")
        total += lgamma(concentration) - lgamma(concentration + sum(counts))
        for count, share in zip(counts, shares, strict=True):
            prior = concentration * share
            total += lgamma(prior + count) - lgamma(prior) - count * log(share)
    return min(1.0, exp(-total))
