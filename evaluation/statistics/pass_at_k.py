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

MAX_K = 100  # largest k of a curve


class AtK(NamedTuple):
    """pass@k and its interval, as shares."""

    k: int
    share: float
    low: float
    high: float


def pass_at_k(correct: Sequence[int], samples: Sequence[int], k: int) -> float:
    """Return pass@k: the chance that at least one of k completions is correct, averaged over the
    problems; unbiased.

    correct, samples: one count for each problem, same length P >= 1: correct completions c, scored
    completions n, 0 <= c <= n (INFRA is in neither). Returns a share in [0, 1], not a percentage.
    Raises ValueError, naming the first problem with n < k: there is no estimate then.
    Source: Chen et al. 2021, arXiv:2107.03374, equation 1: mean of 1 - C(n - c, k) / C(n, k).
    """
    _check(correct, samples, k)
    return fmean(1 - comb(n - c, k) / comb(n, k) for c, n in zip(correct, samples, strict=True))


def estimates(correct: Sequence[int], samples: Sequence[int], k: int) -> list[float]:
    """Return each problem's pass@k, not averaged. Raises ValueError as `pass_at_k` does."""
    _check(correct, samples, k)
    return [1 - comb(n - c, k) / comb(n, k) for c, n in zip(correct, samples, strict=True)]


def curve(
    correct: Sequence[int],
    samples: Sequence[int],
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
    k_values = (
        list(ks) if ks is not None else list(range(1, min(MAX_K, min(samples, default=1)) + 1))
    )
    _check(correct, samples, max(k_values, default=1))
    values = _estimates(np.asarray(correct), np.asarray(samples), np.asarray(k_values))
    intervals = mean_intervals(
        values, 0.0, 1.0, clusters, confidence=confidence, draws=draws, seed=seed
    )
    return [
        AtK(k, float(share), *interval)
        for k, share, interval in zip(k_values, values.mean(0), intervals, strict=True)
    ]


def _estimates(
    correct: npt.NDArray[np.int64], samples: npt.NDArray[np.int64], ks: npt.NDArray[np.int64]
) -> Floats:
    """Return 1 - C(n - c, k) / C(n, k), shape (tasks, ks), by logarithms of factorials."""
    from scipy.special import gammaln

    wrong, k = (samples - correct)[:, None], ks[None, :]
    n = samples[:, None]
    logs = (
        gammaln(wrong + 1)
        - gammaln(np.maximum(wrong - k, 0) + 1)
        - gammaln(n + 1)
        + gammaln(n - k + 1)
    )
    estimate: Floats = np.where(wrong >= k, -np.expm1(np.minimum(logs, 0.0)), 1.0)
    return estimate


def _check(correct: Sequence[int], samples: Sequence[int], k: int) -> None:
    if k < 1:
        raise ValueError(f"`k` of pass@k must be at least 1, got {k}")
    if not len(samples):
        raise ValueError(f"pass@{k} needs at least one problem, got none")
    if (short := next((i for i, n in enumerate(samples) if n < k), None)) is not None:
        raise ValueError(
            f"pass@{k} needs {k} scored completions, problem {short} has {samples[short]}: "
            "generate more or lower k"
        )
    if (
        odd := next(
            (i for i, (c, n) in enumerate(zip(correct, samples, strict=True)) if not 0 <= c <= n),
            None,
        )
    ) is not None:
        raise ValueError(
            f"problem {odd} has {correct[odd]} correct of {samples[odd]} completions: check "
            "the counts"
        )
