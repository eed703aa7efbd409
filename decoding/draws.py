"""The random numbers of a completion: the same in a rollout, a score and the gateway.

A row uses one number in [0, 1) for each token. They depend on a seed and the prompt alone. Of many
completions of one prompt, each has a seed of its own, which `nth_seed` derives; a client that
sends the derived seed in a request of its own gets the same completion.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

SEEDS = 2**31  # servers of OpenAI's API take at least these


def nth_seed(seed: int, number: int) -> int:
    """Return the seed of the draw with this number; that of number 0 is the seed itself.

    Rollouts use it twice: for the version of the weights, then for the draw.
    """
    if number == 0:
        return seed % SEEDS
    digest = hashlib.sha256(f"{seed % SEEDS} {number}".encode()).digest()
    return int.from_bytes(digest[:8]) % SEEDS


def uniform_of(seed: int, prompt: Sequence[int]) -> np.random.Generator:
    """Return the source of a row's random numbers, for the draw of this seed."""
    digest = hashlib.sha256(np.array([seed % SEEDS, *prompt], np.int64).tobytes()).digest()
    return np.random.default_rng([*digest])
