"""pass@k: the unbiased estimate, with an interval over the tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import comb
from statistics import fmean
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluation.statistics.bounded_mean import DRAWS, Clusters, mean_intervals
from evaluation.statistics.hypothesis_tests import Floats

MOST = 100  # largest k of a curve


class AtK(NamedTuple):
    """pass@k and its interval, as shares."""

    k: int
    share: float
    low: float
    high: float


def pass_at_k(correct: Sequence[int], drawn: Sequence[int], k: int) -> float:
    """Return pass@k: the chance that at least one of k completions is right, averaged over the
    problems; unbiased.

    correct, drawn: one count for each problem, same length P >= 1: right completions c, scored
    completions n, 0 <= c <= n (INFRA is in neither). Returns a share in [0, 1], not a percentage.
    Raises ValueError, naming the first problem with n < k: there is no estimate then.
    Source: Chen et al. 2021, arXiv:2107.03374, equation 1: mean of 1 - C(n - c, k) / C(n, k).
    """
    _check(correct, drawn, k)
    return fmean(1 - comb(n - c, k) / comb(n, k) for c, n in zip(correct, drawn, strict=True))


def estimates(correct: Sequence[int], drawn: Sequence[int], k: int) -> list[float]:
    """Return each problem's pass@k, not averaged. Raises ValueError as `pass_at_k` does."""
    _check(correct, drawn, k)
    return [1 - comb(n - c, k) / comb(n, k) for c, n in zip(correct, drawn, strict=True)]


def curve(
    correct: Sequence[int],
    drawn: Sequence[int],
    ks: Iterable[int] | None = None,
    clusters: Clusters = None,
    *,
    confidence: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> list[AtK]:
    """Return pass@k for many k, each with Gaffke's interval over the tasks, or over their clusters;
    one set of draws for all k.

    ks: None: 1 to 100, up to the fewest completions of a task. Raises ValueError for a larger k.
    """
    wanted = list(ks) if ks is not None else list(range(1, min(MOST, min(drawn, default=1)) + 1))
    _check(correct, drawn, max(wanted, default=1))
    values = _estimates(np.asarray(correct), np.asarray(drawn), np.asarray(wanted))
    intervals = mean_intervals(
        values, 0.0, 1.0, clusters, confidence=confidence, draws=draws, seed=seed
    )
    return [
        AtK(k, float(share), *interval)
        for k, share, interval in zip(wanted, values.mean(0), intervals, strict=True)
    ]


def _estimates(
    correct: npt.NDArray[np.int64], drawn: npt.NDArray[np.int64], ks: npt.NDArray[np.int64]
) -> Floats:
    """Return 1 - C(n - c, k) / C(n, k), shape (tasks, ks), by logarithms of factorials."""
    from scipy.special import gammaln

    wrong, k = (drawn - correct)[:, None], ks[None, :]
    n = drawn[:, None]
    logs = (
        gammaln(wrong + 1)
        - gammaln(np.maximum(wrong - k, 0) + 1)
        - gammaln(n + 1)
        + gammaln(n - k + 1)
    )
    estimate: Floats = np.where(wrong >= k, -np.expm1(np.minimum(logs, 0.0)), 1.0)
    return estimate


def _check(correct: Sequence[int], drawn: Sequence[int], k: int) -> None:
    if k < 1:
        raise ValueError(f"pass@{k}: k counts answers and is at least 1")
    if not len(drawn):
        raise ValueError(f"pass@{k} of no problems is no score: evaluate at least one")
    if (short := next((i for i, n in enumerate(drawn) if n < k), None)) is not None:
        raise ValueError(
            f"pass@{k} needs {k} scored answers, problem {short} has {drawn[short]}: draw "
            "more or lower k"
        )
    if (
        odd := next(
            (i for i, (c, n) in enumerate(zip(correct, drawn, strict=True)) if not 0 <= c <= n),
            None,
        )
    ) is not None:
        raise ValueError(
            f"problem {odd} has {correct[odd]} right answers of {drawn[odd]}: count again"
        )
