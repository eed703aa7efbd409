"""Find similar sets of shingles among many, without comparing all pairs.

MinHash (Broder 1997) by `rensa`, then locality-sensitive hashing: two signatures that agree in all
rows of one of 32 bands are a candidate pair. Four rows per band find 99.7 % of the pairs with a
Jaccard similarity of 0.65 and 87 % of those with 0.5; the caller compares the candidates exactly.

The banding uses numpy, not rensa's own index, because buckets must be capped: 10,000 similar sets
in one bucket are 50 million pairs. Each row of a bucket is compared only with the bucket's first
rows, so that the work grows linearly; skipped comparisons are counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, Protocol
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
Signatures = NDArray[np.uint32]  # (sets, PERMUTATIONS)
PERMUTATIONS, BANDS, SEED = 128, 32, 1
ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio
CHUNK = 4096


@dataclass(frozen=True)
class CandidatePairs:
    """Candidate pairs of rows, each once, in order; `left` comes before `right`.

    capped: number of overfull buckets; uncompared: number of pairs skipped in them.
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    capped: int = 0
    uncompared: int = 0


def shingles(tokens: Sequence[str], sizes: Iterable[int]) -> Hashes:
    """Return sorted distinct 64-bit hashes of all runs of the given lengths.

    They are equal on every machine. A text shorter than a run is one run.
    """
    if not tokens:
        return np.empty(0, np.uint64)
    words = np.fromiter(map(_hash, tokens), np.uint64, len(tokens))
    hashes = []
    for size in sizes:
        size = min(size, len(words))
        run = words[: len(words) - size + 1] + np.uint64(size)
        for at in range(1, size):
            run = (run * ODD) ^ (run >> np.uint64(29)) ^ words[at : len(words) - size + 1 + at]
        run = run * ODD
        hashes.append(run ^ (run >> np.uint64(32)))
    return np.unique(np.concatenate(hashes))


@lru_cache(1 << 16)
def _hash(token: str) -> int:
    return crc32(token.encode("utf-8", "replace"))


def jaccard(one: Hashes, other: Hashes) -> float:
    """Return the Jaccard similarity of two sets; 0 if both are empty."""
    shared = np.intersect1d(one, other, assume_unique=True).size
    return shared / max(1, one.size + other.size - shared)


def signatures(sets: Iterable[Hashes]) -> Signatures:
    """Return one row per set, in their order. An empty set is similar to no other."""
    import rensa

    rows = [np.empty((0, PERMUTATIONS), np.uint32)]
    sets = iter(sets)
    done = 0
    while chunk := list(islice(sets, CHUNK)):
        filled = [
            hashes if hashes.size else np.array([2**64 - 1 - done - at], np.uint64)
            for at, hashes in enumerate(chunk)
        ]
        ends = np.cumsum([0, *(hashes.size for hashes in filled)], dtype=np.uint64)
        matrix: Any = rensa.RMinHash.digest_matrix_from_flat_token_hashes(
            np.concatenate(filled), ends, PERMUTATIONS, SEED
        )
        rows.append(np.array(matrix.to_rows(), dtype=np.uint32))
        done += len(chunk)
    return np.concatenate(rows)


class Rows(Protocol):
    """The signatures of some sets, in memory or in a file."""

    def __len__(self) -> int: ...

    def band(self, number: int) -> Hashes:
        """Return the key of this band for each row: rows that are equal in it have the same."""
        ...

    def read(self, places: NDArray[np.int64]) -> Signatures: ...


@dataclass(frozen=True)
class InMemory:
    """Signatures in memory, as `Rows`."""

    rows: Signatures

    def __len__(self) -> int:
        return len(self.rows)

    def band(self, number: int) -> Hashes:
        return band_keys(self.rows, number)

    def read(self, places: NDArray[np.int64]) -> Signatures:
        return self.rows[places]


def alike(
    rows: Signatures | Rows, first: int | None = None, least: float = 0.0, cap: int = 32
) -> CandidatePairs:
    """Return candidate pairs among the rows.

    first: only pairs of one of the first `first` rows with one of the others. least: minimum share
    of agreeing rows of two signatures, an estimate of the Jaccard similarity with a standard error
    of at most 0.045. cap: the other rows of a bucket are compared with this many rows at its start.
    """
    rows = InMemory(rows) if isinstance(rows, np.ndarray) else rows
    known = np.empty(0, np.uint64)
    capped = uncompared = 0
    for number in range(BANDS):
        order, starts = _buckets(rows.band(number))
        place = np.arange(len(rows)) - starts
        fresh, later = [known], np.arange(len(rows))
        for offset in range(cap):
            later = later[place[later] > offset]
            left, right = order[starts[later] + offset], order[later]
            if first is not None:
                # The first rows come first in their bucket.
                later, left, right = (of[left < first] for of in (later, left, right))
                left, right = left[right >= first], right[right >= first]
            if not later.size:
                break
            agree = _agree(rows, left, right, least)
            fresh.append(
                left[agree].astype(np.uint64) << np.uint64(32) | right[agree].astype(np.uint64)
            )
        known = np.unique(np.concatenate(fresh))
        beyond = np.flatnonzero(place > cap)
        if first is not None:
            beyond = beyond[(order[starts[beyond] + cap] < first) & (order[beyond] >= first)]
        capped += np.unique(starts[beyond]).size
        uncompared += int((place[beyond] - cap).sum())
    return CandidatePairs(
        (known >> np.uint64(32)).astype(np.int64),
        (known & np.uint64(0xFFFFFFFF)).astype(np.int64),
        capped,
        uncompared,
    )


def band_keys(rows: Signatures, number: int) -> Hashes:
    """Return a hash of each row's part in this band."""
    keys = np.zeros(len(rows), np.uint64)
    size = PERMUTATIONS // BANDS
    for column in rows[:, number * size : (number + 1) * size].T:
        keys = (keys ^ column) * ODD
        keys ^= keys >> np.uint64(31)
    return keys


def _buckets(keys: Hashes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the row order that groups rows of equal keys, and each bucket's start per place.

    Rows of a bucket keep their own order.
    """
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    begins = np.concatenate(([True], ordered[1:] != ordered[:-1]))[: len(ordered)]
    return order, np.maximum.accumulate(np.where(begins, np.arange(len(ordered)), 0))


def _agree(
    rows: Rows, left: NDArray[np.int64], right: NDArray[np.int64], least: float
) -> NDArray[np.bool_]:
    """Return for each pair whether at least that share of the signature rows agrees.

    Works in chunks, because the rows of all pairs would not fit into memory.
    """
    agree = np.empty(len(left), bool)
    for at in range(0, len(left), CHUNK):
        part = slice(at, at + CHUNK)
        equal = rows.read(left[part]) == rows.read(right[part])
        agree[part] = equal.mean(axis=1) >= least
    return agree
