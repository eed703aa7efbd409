"""Frozen parameters: names with wildcards, checked against the model."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any


def freeze(model: Any, patterns: Sequence[str]) -> int:
    """Freeze the parameters that match; return how many numbers they hold.

    Raises ValueError, as `chosen` does.
    """
    names = matching_names((name for name, _ in model.named_parameters()), patterns)
    frozen = [
        parameter.requires_grad_(False)
        for name, parameter in model.named_parameters()
        if name in names
    ]
    return sum(parameter.numel() for parameter in frozen)


def matching_names(names: Iterable[str], patterns: Sequence[str]) -> set[str]:
    """Return the names that a pattern matches (`model.layers.0.*`).

    Raises ValueError if a pattern matches none, or if no name is left to train.
    """
    all_names = list(names)
    matching: set[str] = set()
    for pattern in patterns:
        matches = {name for name in all_names if fnmatchcase(name, pattern)}
        if not matches:
            near = difflib.get_close_matches(pattern, all_names, 2, cutoff=0.3) or all_names[:2]
            raise ValueError(
                f"frozen: {pattern!r} matches no parameter of this model, e.g. {' and '.join(near)}"
            )
        matching |= matches
    if all_names and len(matching) == len(set(all_names)):
        raise ValueError(
            f"frozen: {', '.join(patterns)} matches every parameter: leave some to train"
        )
    return matching


def lower_half(layers: int) -> tuple[str, ...]:
    """Return patterns for the embedding and the first half of the blocks.

    The names are those of most decoders of transformers.
    """
    return ("model.embed_tokens.*", *(f"model.layers.{number}.*" for number in range(layers // 2)))
