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

from problems.chat_template import rendered
from verl_jobs import samples
from verl_jobs.gguf.header import read_header
from verl_jobs.gguf.source import find, names_gguf
from verl_jobs.gguf.tokenizer import make_tokenizer

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


def tokenizer_of(model: str) -> Any:
    """Return the tokenizer of a folder, hub id or GGUF file.

    Raises UnfitStart for a GGUF file without one, OSError and ValueError otherwise.
    """
    from transformers import AutoTokenizer

    if names_gguf(model):
        return make_tokenizer(read_header(find(model).path))
    return AutoTokenizer.from_pretrained(model, local_files_only=Path(model).is_dir())


def of_prompts(tokenizer: Any, prompts: Iterable[str]) -> Lengths:
    """Measure prompts as verl does.

    A prompt is a user message in the chat template, with the head of the reply.
    """
    lengths = (length_of(tokenizer, [{"role": "user", "content": text}]) for text in prompts)
    return Lengths("prompts", tuple(sorted(lengths)))


def length_of(tokenizer: Any, chat: list[dict[str, str]]) -> int:
    """Return the tokens of a chat in the template, with the head of the reply.

    Raises ProblemError for a chat that the template refuses.
    """
    return len(tokenizer.encode(rendered(tokenizer, chat), add_special_tokens=False))


def of_completions(name: str, tokenizer: Any, completions: Iterable[str]) -> Lengths:
    """Measure completions, including the end token."""
    lengths = (len(tokenizer.encode(text, add_special_tokens=False)) + 1 for text in completions)
    return Lengths(name, tuple(sorted(lengths)))


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


def _up(length: int) -> int:
    return -(-length // STEP) * STEP
