"""pass@k: the unbiased estimate, with an interval over the tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import comb
from statistics import fmean
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluation.statistics.hypothesis_tests import Floats

MOST = 100  # largest k of a curve
FEW = 10  # mean tasks per class above which classes are drawn by their counts
CHUNK = 1000  # bootstrap draws at once: 8 MB for 1,000 classes


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
    *,
    confidence: float = 0.95,
    draws: int = 10_000,
    seed: int = 0,
) -> list[AtK]:
    """Return pass@k for many k, each with its percentile interval: tasks are resampled, one set of
    draws for all k.

    ks: None: 1 to 100, up to the fewest completions of a task. Raises ValueError for a larger k.
    Tasks with the same c and n have the same estimate at every k, so a draw is a count for each
    such class: 1,000 tasks with 200 completions make at most 201 classes, and 10,000 draws of them
    for 100 values of k are one product of matrices.
    """
    k_values = (
        list(ks) if ks is not None else list(range(1, min(MOST, min(samples, default=1)) + 1))
    )
    _check(correct, samples, max(k_values, default=1))
    classes, counts = np.unique(np.column_stack([correct, samples]), axis=0, return_counts=True)
    values = _estimates(classes[:, 0], classes[:, 1], np.asarray(k_values))
    tasks, rng = len(samples), np.random.default_rng(seed)
    sizes = [CHUNK] * (draws // CHUNK) + ([draws % CHUNK] if draws % CHUNK else [])
    means = np.concatenate(
        [_class_draws(rng, counts, tasks, size) @ values / tasks for size in sizes]
    )
    lows, highs = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    shares = counts @ values / tasks
    return [
        AtK(k, float(share), float(low), float(high))
        for k, share, low, high in zip(k_values, shares, lows, highs, strict=True)
    ]


def _class_draws(
    rng: np.random.Generator, counts: npt.NDArray[np.int64], tasks: int, size: int
) -> Floats:
    """Return (size, classes): how often each class occurs in a draw of so many tasks. Many classes
    are faster drawn task by task.
    """
    if len(counts) * FEW < tasks:
        return rng.multinomial(tasks, counts / tasks, size=size).astype(float)
    class_of = np.repeat(np.arange(len(counts)), counts)
    places = (
        class_of[rng.integers(0, tasks, (size, tasks))] + len(counts) * np.arange(size)[:, None]
    )
    return np.bincount(places.ravel(), minlength=size * len(counts)).reshape(size, -1).astype(float)


def _estimates(
    correct: npt.NDArray[np.int64], samples: npt.NDArray[np.int64], ks: npt.NDArray[np.int64]
) -> Floats:
    """Return 1 - C(n - c, k) / C(n, k), shape (classes, ks), by logarithms of factorials."""
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
