"""A batch that decodes one token of every row at a time; rows join and leave between tokens.

In: rows. Out: the rows, with their tokens. The cache of keys and values is shared, padded on the
left, so that the last column is each row's newest token. A row that ends leaves, and its cache is
freed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from torch.nn.functional import pad

from decoding.cache import growing_cache
from decoding.text import TextStream

MIN_PART = 16  # rows, below which a thread of its own reads the weights for too few

# By the model, a stop word, its limit; or the model returned no numbers (NaN).
Ending = Literal["end", "stop", "length", "broken"]


@dataclass(eq=False)
class Row:
    """A completion under way.

    limit: its maximum tokens. uniform: draws one number in [0, 1) for each token; None takes the
    most likely token. text: watches for stop words. alternatives: how many of the most likely
    tokens to report.
    """

    prompt: list[int]
    limit: int
    ends: frozenset[int] = frozenset()
    temperature: float = 0.0
    top_p: float = 1.0
    uniform: np.random.Generator | None = None
    text: TextStream | None = None
    alternatives: int | None = None

    tokens: list[int] = field(default_factory=list)  # with the end token, if it ended by one
    # natural logarithms, under the distribution that the tokens are drawn from
    log_probs: list[float] = field(default_factory=list)
    ending: Ending | None = None
    piece: str = ""  # text that the newest token made certain
    # Of the newest token, before temperature and top-p: its own log-probability, and the most
    # likely tokens with theirs.
    log_prob: float = 0.0
    top: tuple[tuple[int, float], ...] = ()
    pad: int = 0  # masked columns before its first token

    def take(self, token: int, log_prob: float, broken: bool) -> None:
        """Add a token, and see whether the row ends with it."""
        self.tokens.append(token)
        self.log_probs.append(log_prob)
        if broken:
            self.ending = "broken"
        elif token in self.ends:
            self.ending = "end"
        elif len(self.tokens) >= self.limit:
            self.ending = "length"
        if self.text is None:
            return
        self.piece = self.text.add(token) if self.ending in (None, "length") else ""
        if self.ending and not self.text.stopped:
            self.piece += self.text.finish()
        if self.text.stopped and self.ending in (None, "length"):
            self.ending = "stop"


@dataclass
class Batch:
    """Completions that are decoded together; rows join and leave between steps.

    model: of a `decoding.checkpoint.Checkpoint`. For one thread; threads may share a model.
    """

    model: Any
    pad_token: int
    rows: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._layers = int(self.model.config.get_text_config().num_hidden_layers)
        self._clear()

    def _clear(self) -> None:
        device = self.model.device
        self._cache = growing_cache(self._layers)
        self._mask = torch.zeros((0, 0), dtype=torch.long, device=device)  # [rows, columns]
        # [rows, 1]: the newest token of each row, and its position
        self._last = self._position = self._mask.new_zeros((0, 1))

    def join(self, rows: Sequence[Row]) -> None:
        """Read the prompts of new rows and draw their first tokens; those that do not end with it
        join.
        """
        width = max(len(row.prompt) for row in rows)
        for row in rows:
            row.pad = width - len(row.prompt)
        # A prompt is read once for all of its rows.
        numbers = {prompt: at for at, prompt in enumerate(dict.fromkeys(_key(r) for r in rows))}
        device = self.model.device
        ids = torch.tensor(
            [[self.pad_token] * (width - len(p)) + list(p) for p in numbers], device=device
        )
        mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in numbers], device=device)
        position = (mask.cumsum(1) - 1).clamp(min=0)
        cache = growing_cache(self._layers)
        logits = self._logits(ids, mask, position, cache)
        if len(numbers) < len(rows):
            own = torch.tensor([numbers[_key(row)] for row in rows], device=device)
            logits, mask, position = logits[own], mask[own], position[own]
            for layer in cache.layers:
                layer.keep(own, layer.length)
        last = _draw(logits, rows)
        columns = max(width, self._mask.shape[1])
        for row in self.rows:
            row.pad += columns - self._mask.shape[1]
        for row in rows:
            row.pad += columns - width
        self._mask = torch.cat(
            [pad(each, (columns - each.shape[1], 0)) for each in (self._mask, mask)]
        )
        self._position = torch.cat([self._position, position[:, -1:]])
        self._last = torch.cat([self._last, last])
        for layer, new in zip(self._cache.layers, cache.layers, strict=True):
            layer.join(new)
        self.rows += rows
        self.leave([row for row in rows if row.ending])

    def step(self) -> list[Row]:
        """Draw the next token of every row. Return these rows; those that end leave."""
        rows = self.rows
        self._mask = pad(self._mask, (0, 1), value=1)
        self._position = self._position + 1
        logits = self._logits(self._last, self._mask, self._position, self._cache)
        self._last = _draw(logits, rows)
        self.leave([row for row in rows if row.ending])
        return rows

    def leave(self, gone: Sequence[Row]) -> None:
        """Remove rows, and the columns that only they used."""
        removed = set(gone)
        stay = [at for at, row in enumerate(self.rows) if row not in removed]
        if len(stay) == len(self.rows):
            return
        self.rows = [self.rows[at] for at in stay]
        if not stay:
            return self._clear()
        unused = min(row.pad for row in self.rows)
        for row in self.rows:
            row.pad -= unused
        rows = torch.tensor(stay, device=self._mask.device)
        self._mask = self._mask[rows, unused:]
        self._position, self._last = self._position[rows], self._last[rows]
        for layer in self._cache.layers:
            layer.keep(rows, layer.length - unused)

    @torch.inference_mode()
    def _logits(
        self, ids: torch.Tensor, mask: torch.Tensor, position: torch.Tensor, cache: Any
    ) -> torch.Tensor:
        """Return the logits of each row's next token, [rows, vocabulary]."""
        out = self.model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=position,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        return out.logits[:, -1].float()  # type: ignore[no-any-return]


def _key(row: Row) -> tuple[int, ...]:
    return tuple(row.prompt)


@torch.inference_mode()
def _draw(logits: torch.Tensor, rows: Sequence[Row]) -> torch.Tensor:
    """Give each row its next token. Returns them as [rows, 1]."""
    highest, best = logits.max(-1)
    tokens, log_probs = _choose(logits, best, rows)
    broken = highest.isnan().tolist()  # the largest of numbers with a NaN is NaN
    for at, row in enumerate(rows):
        if row.alternatives is not None and not broken[at]:
            log_p = logits[at].log_softmax(-1)
            values, top = log_p.topk(min(row.alternatives, len(log_p)))
            row.log_prob = float(log_p[tokens[at]])
            row.top = tuple(zip(top.tolist(), values.tolist(), strict=True))
    drawn = zip(rows, tokens.tolist(), log_probs.tolist(), broken, strict=True)
    for row, token, log_prob, bad in drawn:
        row.take(token, log_prob, bad)
    return tokens.unsqueeze(1)


def _choose(
    logits: torch.Tensor, best: torch.Tensor, rows: Sequence[Row]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return each row's next token and its log-probability, from logits [rows, vocabulary].

    A token is `best`, or drawn by inverse sampling at the row's own random number. top_p: a token
    stays while those before it have less than the share (Holtzman et al. 2020, arXiv:1904.09751).
    """
    numbers = [row.uniform.random() if row.uniform is not None else -1.0 for row in rows]
    if max(numbers) < 0:
        return best, logits.log_softmax(-1).gather(-1, best.unsqueeze(1)).squeeze(1)
    heat = logits.new_tensor([row.temperature if row.uniform else 1.0 for row in rows])
    chances = (logits / heat.unsqueeze(1)).softmax(-1).double()
    if min(row.top_p for row in rows) < 1:
        falling, order = chances.sort(-1, descending=True)
        share = chances.new_tensor([row.top_p if row.uniform else 1.0 for row in rows])
        falling[falling.cumsum(-1) - falling >= share.unsqueeze(1)] = 0.0
        chances = torch.zeros_like(chances).scatter(-1, order, falling)
    cdf = chances.cumsum(-1)
    number = cdf.new_tensor(numbers).unsqueeze(1)
    at = torch.searchsorted(cdf, number * cdf[:, -1:], right=True).clamp(max=logits.shape[1] - 1)
    token = torch.where(number < 0, best.unsqueeze(1), at)
    return token.squeeze(1), (chances.gather(1, token) / cdf[:, -1:]).log().squeeze(1)


def decode(model: Any, pad_token: int, rows: Sequence[Row]) -> None:
    """Decode rows together until the last one has ended."""
    batch = Batch(model, pad_token)
    batch.join(rows)
    while batch.rows:
        batch.step()
