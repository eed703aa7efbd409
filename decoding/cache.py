"""Keys and values of a batch whose rows join and leave.

In: one layer's keys and values, [rows, heads, columns, width] each. A row's tokens are the last
columns; columns before its first token are masked. Room for more columns is reserved in advance, so
that a token is written in place instead of copying all columns.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers.cache_utils import Cache, CacheLayerMixin

RESERVE = 64  # columns


class GrowingLayer:
    """One layer, with the methods of transformers' `DynamicLayer` that a forward pass calls."""

    is_sliding = False
    is_compileable = False
    is_initialized = True

    def __init__(self) -> None:
        self.length = 0
        self.pair: tuple[torch.Tensor, torch.Tensor] | None = None

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Add columns; return all of them."""
        end = self.length + keys.shape[2]
        if self.pair is None or end > self.pair[0].shape[2]:
            self.pair = self._moved(self.views(), keys, values, end)
        for stored, new in zip(self.pair, (keys, values), strict=True):
            stored[:, :, self.length : end] = new
        self.length = end
        return self.pair[0][:, :, :end], self.pair[1][:, :, :end]

    def views(self) -> tuple[torch.Tensor, ...]:
        return tuple(t[:, :, : self.length] for t in self.pair) if self.pair else ()

    def _moved(
        self, old: tuple[torch.Tensor, ...], keys: torch.Tensor, values: torch.Tensor, end: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        def grown(at: int, like: torch.Tensor) -> torch.Tensor:
            rows, heads, _, width = like.shape
            # Zeros: what is masked must still be a number.
            new = like.new_zeros((rows, heads, end + RESERVE, width))
            if old:
                new[:, :, : self.length] = old[at]
            return new

        return grown(0, keys), grown(1, values)

    def keep(self, rows: torch.Tensor, columns: int) -> None:
        """Keep these rows and their last columns, with what is reserved behind them."""
        if self.pair:
            keys, values = (t[rows, :, self.length - columns :] for t in self.pair)
            self.pair, self.length = (keys, values), columns

    def join(self, other: GrowingLayer) -> None:
        """Add the rows of another layer below these, aligned at the last column."""
        if self.pair is None or other.pair is None:
            self.pair, self.length = other.pair, other.length
            return
        columns, above = max(self.length, other.length), self.pair[0].shape[0]

        def joined(at: int) -> torch.Tensor:
            mine, theirs = self.views()[at], other.views()[at]
            rows, heads, width = above + theirs.shape[0], mine.shape[1], mine.shape[3]
            new = mine.new_zeros((rows, heads, columns + RESERVE, width))
            new[:above, :, columns - self.length : columns] = mine
            new[above:, :, columns - other.length : columns] = theirs
            return new

        self.pair = (joined(0), joined(1))
        self.length = columns

    def get_seq_length(self) -> int:
        return self.length

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.length + query_length, 0

    def get_max_cache_shape(self) -> int:
        return -1


CacheLayerMixin.register(GrowingLayer)


def growing_cache(layers: int) -> Any:
    """Return an empty cache for a model with this many layers."""
    return Cache(layers=[GrowingLayer() for _ in range(layers)])
