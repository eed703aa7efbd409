"""The trainer's forward pass on a CPU: a prompt is computed once for all of its completions.

A group's completions follow their prompt in one row, masked from each other, each at the positions
right after the prompt. Logits are computed where a completion's token is predicted, and nowhere
else. verl would compute prompt and completion of every row, and logits of all their tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from verl_jobs.config.engine_overrides import SDPA

ENTROPY_ROWS = 512  # distributions at a time, whose copies fit in memory
FULL, SLIDING = "full_attention", "sliding_attention"  # transformers' kinds of layers


@dataclass(frozen=True)
class SharedRows:
    """Rows of a forward pass, one for each prompt, whose last tokens are in one column.

    ids, positions: [rows, columns]. mask: [rows, 1, columns, columns], whether a token sees
    another. first: the column of the prompts' last tokens, the first that predicts.
    row, column: [completion tokens]: which logits predict each, counted from `first`.
    """

    ids: Tensor
    positions: Tensor
    mask: Tensor
    first: int
    row: Tensor
    column: Tensor


def shares(config: Any, prompts: Sequence[Tensor], completions: Sequence[Tensor]) -> bool:
    """Return whether a model computes such rows rightly, and whether that saves anything.

    config: of transformers. Layers must see all earlier tokens: attention, whose window, if it has
    one, is not shorter than a row. A row may be as long as a prompt with all completions. Only
    torch's own attention reads the mask of such rows (Bloom and MPT have none), and ALiBi, an
    option of Falcon, makes its positions from another mask.
    """
    if getattr(config, "_attn_implementation", SDPA) != SDPA or getattr(config, "alibi", False):
        return False
    window = getattr(config, "sliding_window", None)
    kinds = set(getattr(config, "layer_types", None) or [FULL])
    longest = max(map(len, prompts)) + sum(map(len, completions))
    if kinds - {FULL, SLIDING} or (window is not None and longest > window):
        return False
    return len({tuple(prompt.tolist()) for prompt in prompts}) < len(prompts)


def group_size(prompts: Sequence[Tensor], lengths: Sequence[int], limit: int) -> int:
    """Return how many completions in a row have the same prompt, if that is the same throughout and
    a group is within the limit of a micro-batch; else 1.

    lengths: tokens of each sequence; limit: tokens of a micro-batch.
    """
    runs = [len([*run]) for _, run in groupby(tuple(prompt.tolist()) for prompt in prompts)]
    size = runs[0]
    groups = (lengths[at : at + size] for at in range(0, len(lengths), size))
    return size if set(runs) == {size} and max(map(sum, groups)) <= limit else 1


def share(prompts: Sequence[Tensor], completions: Sequence[Tensor], pad: int) -> SharedRows:
    """Put the completions of equal prompts into one row.

    prompts, completions: token ids, [tokens] each, none empty. pad: id of padding. The completions'
    tokens stay in the order of the arguments.
    """
    groups: dict[tuple[int, ...], list[int]] = {}
    for at, prompt in enumerate(prompts):
        groups.setdefault(tuple(prompt.tolist()), []).append(at)
    width = max(map(len, groups))
    columns = width + max(sum(len(completions[at]) for at in group) for group in groups.values())
    ids = torch.full((len(groups), columns), pad)
    positions, owner = torch.zeros_like(ids), torch.full_like(ids, -1)  # -1: padding, 0: prompt
    rows, predicting = [ids] * len(prompts), [ids] * len(prompts)
    for row, group in enumerate(groups.values()):
        prompt = prompts[group[0]]
        start = width - len(prompt)
        ids[row, start:width] = prompt
        positions[row, start:width] = torch.arange(len(prompt))
        owner[row, start:width] = 0
        end = width
        for number, at in enumerate(group, 1):
            begin, end = end, end + len(completions[at])
            ids[row, begin:end] = completions[at]
            positions[row, begin:end] = torch.arange(len(prompt), len(prompt) + end - begin)
            owner[row, begin:end] = number
            rows[at] = torch.full((end - begin,), row)
            # The prompt's last token predicts the first of each completion.
            predicting[at] = torch.arange(begin - 1, end - 1)
            predicting[at][0] = width - 1
    same = owner.unsqueeze(2) == owner.unsqueeze(1)
    seen = (same | (owner == 0).unsqueeze(1)).tril()  # padding sees padding: no row is empty
    return SharedRows(
        ids,
        positions,
        seen.unsqueeze(1),
        width - 1,
        torch.cat(rows),
        torch.cat(predicting) - (width - 1),
    )


def log_probs_of(logits: Tensor, completions: Sequence[Tensor]) -> Tensor:
    """Return each token's log-probability, [tokens], from logits [tokens, vocabulary]."""
    return -cross_entropy(logits, torch.cat(list(completions)), reduction="none")


def entropies_of(logits: Tensor) -> Tensor:
    """Return each distribution's entropy in nats, [tokens], from logits [tokens, vocabulary]."""

    def entropy(part: Tensor) -> Tensor:
        log_p = part.log_softmax(-1)
        return -(log_p.exp() * log_p).sum(-1)

    return torch.cat([entropy(part) for part in torch.split(logits, ENTROPY_ROWS)])


def full_length(
    values: Tensor, prompts: Sequence[Tensor], completions: Sequence[Tensor]
) -> tuple[Tensor, Tensor]:
    """Place values of completion tokens where verl reads them.

    verl's sequences hold the prompt, too, and the value of a token is one place before it. Returns
    the values of all tokens of all sequences, 0 for the others, and the offsets of the sequences.
    """
    lengths = torch.tensor([len(p) + len(c) for p, c in zip(prompts, completions, strict=True)])
    ends = lengths.cumsum(0)
    places = torch.cat(
        [
            torch.arange(int(end) - len(c) - 1, int(end) - 1)
            for end, c in zip(ends, completions, strict=True)
        ]
    )
    placed = values.new_zeros(int(ends[-1])).index_put((places,), values)
    return placed, torch.cat([ends.new_zeros(1), ends])
