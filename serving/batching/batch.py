"""A batch that decodes one token of every row at a time; rows join and leave between tokens.

In: rows (token ids and how to sample). Out: the next token of each row. A row's tokens depend on
its own prompt and random numbers; its neighbours can only change a tie in the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from serving.batching.cache import growing_cache

if TYPE_CHECKING:
    import torch


@dataclass(eq=False)
class Row:
    """One completion being generated.

    rng: draws one number in [0, 1) a token; None: the most likely token. logprobs: None, or how
    many alternatives to report beside the token.
    """

    prompt: list[int]
    temperature: float = 0.0
    top_p: float = 1.0
    rng: np.random.Generator | None = None
    logprobs: int | None = None
    pad: int = 0  # masked columns before its first token


@dataclass(frozen=True)
class Token:
    """The next token of a row. logprob: natural logarithm of its probability under the model,
    before temperature; top: the most likely tokens with theirs. `broken`: the model returned no
    numbers for this row.
    """

    id: int
    logprob: float = 0.0
    top: tuple[tuple[int, float], ...] = ()
    broken: bool = False


@dataclass
class Batch:
    """model: a causal language model of transformers, in evaluation mode. Not for many threads."""

    model: Any
    pad_token: int
    rows: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._layers = int(self.model.config.get_text_config().num_hidden_layers)
        self._cache = growing_cache(self._layers)
        self._last: torch.Tensor | None = None  # [rows]: the newest token of each row
        self._mask: torch.Tensor | None = None  # [rows, columns]
        self._position: torch.Tensor | None = None  # [rows]: that of the newest token

    def join(self, rows: Sequence[Row]) -> list[Token]:
        """Read the prompts of new rows, add them, and return their first tokens."""
        import torch

        width = max(len(row.prompt) for row in rows)
        for row in rows:
            row.pad = width - len(row.prompt)
        device = self.model.device
        ids = torch.tensor([[self.pad_token] * r.pad + r.prompt for r in rows], device=device)
        mask = torch.tensor([[0] * r.pad + [1] * len(r.prompt) for r in rows], device=device)
        position = (mask.cumsum(1) - 1).clamp(min=0)
        cache = growing_cache(self._layers)
        tokens, last = self._forward(ids, mask, position, cache, rows)
        if self._mask is None or self._position is None or self._last is None:
            self._mask, self._position, self._last = mask, position[:, -1], last
        else:
            columns = max(width, self._mask.shape[1])
            for row in self.rows:
                row.pad += columns - self._mask.shape[1]
            for row in rows:
                row.pad += columns - width
            pad = torch.nn.functional.pad
            self._mask = torch.cat(
                [pad(each, (columns - each.shape[1], 0)) for each in (self._mask, mask)]
            )
            self._position = torch.cat([self._position, position[:, -1]])
            self._last = torch.cat([self._last, last])
        for mine, theirs in zip(self._cache.layers, cache.layers, strict=True):
            mine.join(theirs)
        self.rows += rows
        return tokens

    def step(self) -> list[Token]:
        """Return the next token of every row, in the order of `rows`."""
        import torch

        assert self._mask is not None and self._position is not None and self._last is not None
        self._mask = torch.nn.functional.pad(self._mask, (0, 1), value=1)
        self._position = self._position + 1
        tokens, self._last = self._forward(
            self._last.unsqueeze(1),
            self._mask,
            self._position.unsqueeze(1),
            self._cache,
            self.rows,
        )
        return tokens

    def leave(self, gone: Sequence[Row]) -> None:
        """Remove rows, and the columns that only they used."""
        import torch

        stay = [at for at, row in enumerate(self.rows) if row not in gone]
        if not stay:
            self.rows = []
            self._cache = growing_cache(self._layers)
            self._mask = self._position = self._last = None
            return
        if len(stay) == len(self.rows):
            return
        assert self._mask is not None and self._position is not None and self._last is not None
        self.rows = [self.rows[at] for at in stay]
        unused = min(row.pad for row in self.rows)
        for row in self.rows:
            row.pad -= unused
        rows = torch.tensor(stay, device=self._mask.device)
        self._mask = self._mask[rows, unused:]
        self._position, self._last = self._position[rows], self._last[rows]
        for layer in self._cache.layers:
            layer.keep(rows, layer.length - unused)

    def _forward(
        self, ids: Any, mask: Any, position: Any, cache: Any, rows: Sequence[Row]
    ) -> tuple[list[Token], torch.Tensor]:
        import torch

        with torch.inference_mode():
            out = self.model(
                input_ids=ids,
                attention_mask=mask,
                position_ids=position,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            )
            logits = out.logits[:, -1].float()
            last = sampled(logits, rows)
            return _tokens(logits, last, rows), last


def sampled(logits: torch.Tensor, rows: Sequence[Row]) -> torch.Tensor:
    """Return the next token of each row: the most likely one, or one drawn by inverse sampling at
    the row's own random number. logits: [rows, vocabulary].

    top_p: a token stays while those before it have less than the share (Holtzman et al. 2020,
    arXiv:1904.09751).
    """
    import torch

    best = logits.argmax(-1)
    drawn = [at for at, row in enumerate(rows) if row.rng is not None]
    if not drawn:
        return best
    chosen = [rows[at] for at in drawn]
    heat = logits.new_tensor([row.temperature for row in chosen]).unsqueeze(1)
    chances = (logits[drawn].nan_to_num() / heat).softmax(-1).double()
    if any(row.top_p < 1 for row in chosen):
        falling, order = chances.sort(-1, descending=True)
        share = chances.new_tensor([row.top_p for row in chosen]).unsqueeze(1)
        falling[falling.cumsum(-1) - falling >= share] = 0.0
        chances = torch.zeros_like(chances).scatter(-1, order, falling)
    cdf = chances.cumsum(-1)
    uniform = cdf.new_tensor([row.rng.random() for row in chosen if row.rng is not None])
    at = torch.searchsorted(cdf, (uniform.unsqueeze(1) * cdf[:, -1:]), right=True).squeeze(1)
    best[drawn] = at.clamp(max=logits.shape[1] - 1)
    return best


def _tokens(logits: torch.Tensor, last: torch.Tensor, rows: Sequence[Row]) -> list[Token]:
    broken = logits.isnan().any(-1).tolist()
    ids = last.tolist()
    tokens = [Token(id, broken=bad) for id, bad in zip(ids, broken, strict=True)]
    for at, row in enumerate(rows):
        if row.logprobs is not None and not broken[at]:
            log_p = logits[at].log_softmax(-1)
            values, top = log_p.topk(min(row.logprobs, len(log_p)))
            pairs = tuple(zip(top.tolist(), values.tolist(), strict=True))
            tokens[at] = Token(ids[at], float(log_p[ids[at]]), pairs)
    return tokens
