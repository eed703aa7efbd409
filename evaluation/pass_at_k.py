"""pass@k, without bias."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from statistics import fmean


def pass_at_k(correct: Sequence[int], drawn: Sequence[int], k: int) -> float:
    """Chance that at least one of k answers to a problem is right, averaged over the problems; unbiased.

    correct, drawn: one count a problem, same length P >= 1: right answers c, scored answers n, 0 <= c <= n (INFRA is in neither).
    Returns a share in [0, 1], not a percentage.
    Raises ValueError, naming the first problem with n < k: there is no estimate then, and 0 would be a lie.
    Source: Chen et al. 2021, arXiv:2107.03374, equation 1: mean of 1 - C(n - c, k) / C(n, k).
    """
    if k < 1:
        raise ValueError(f"pass@{k}: k counts answers and is at least 1")
    if not drawn:
        raise ValueError(f"pass@{k} of no problems is no score: evaluate at least one")
    if (short := next((i for i, n in enumerate(drawn) if n < k), None)) is not None:
        raise ValueError(f"pass@{k} needs {k} scored answers, problem {short} has {drawn[short]}: draw more or lower k")
    if (odd := next((i for i, (c, n) in enumerate(zip(correct, drawn, strict=True)) if not 0 <= c <= n), None)) is not None:
        raise ValueError(f"problem {odd} has {correct[odd]} right answers of {drawn[odd]}: count again")
    return fmean(1 - comb(n - c, k) / comb(n, k) for c, n in zip(correct, drawn, strict=True))
