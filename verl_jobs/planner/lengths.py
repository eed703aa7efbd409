"""Token lengths of prompts and completions, and the limits that follow from them.

The limits are `training.prompt_tokens` and `training.answer_tokens`. In: a tokenizer, problems, the
completions of a past run. Out: quantiles, and the smallest limits that hold a given share of each
kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

from verl_jobs import samples

SHARES = (0.5, 0.9, 0.95, 0.99, 1.0)
STEP = 8  # limits are multiples of this


@dataclass(frozen=True)
class Lengths:
    """Token counts of one kind of text, ascending."""

    name: str
    tokens: tuple[int, ...]

    def quantile(self, share: float) -> int:
        """Return the smallest length that this share does not exceed."""
        return self.tokens[max(0, ceil(share * len(self.tokens)) - 1)]

    def over(self, limit: int) -> float:
        """Return the share of longer texts."""
        return sum(length > limit for length in self.tokens) / len(self.tokens)


def of_prompts(tokenizer: Any, prompts: Iterable[str]) -> Lengths:
    """Measure prompts as verl does.

    A prompt is a user message in the chat template, with the head of the reply.
    """
    chats = ([{"role": "user", "content": prompt}] for prompt in prompts)
    texts = (
        tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        for chat in chats
    )
    return _measured("prompts", tokenizer, texts, end=0)


def of_completions(name: str, tokenizer: Any, completions: Iterable[str]) -> Lengths:
    """Measure completions, including the end token."""
    return _measured(name, tokenizer, completions, end=1)


def of_run(tokenizer: Any, folder: Path) -> Lengths | None:
    """Measure the completions of all steps of a training; None if there are no samples.

    A truncated completion counts with its truncated length.
    """
    completions = [
        sample.answer for step in samples.steps(folder) for sample in samples.read(folder, step)
    ]
    return of_completions("completions of the run", tokenizer, completions) if completions else None


def limits(prompts: Lengths, completions: Sequence[Lengths], share: float) -> tuple[int, int]:
    """Return token limits for prompts and completions that hold this share of each.

    The limits are multiples of STEP.
    """
    return _up(prompts.quantile(share)), _up(max(kind.quantile(share) for kind in completions))


def _measured(name: str, tokenizer: Any, texts: Iterable[str], end: int) -> Lengths:
    return Lengths(
        name,
        tuple(
            sorted(len(tokenizer.encode(text, add_special_tokens=False)) + end for text in texts)
        ),
    )


def _up(length: int) -> int:
    return -(-length // STEP) * STEP
