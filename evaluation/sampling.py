"""Generation settings and prompt types that every engine shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt

from artifacts.section import Section

Chat = list[dict[str, str]]


Prompt = Chat | str  # a string is sent unchanged: a base model continues it


Progress = Callable[[int, int], None]  # done, total


class Sampling(Section):
    """How completions are generated."""

    n: PositiveInt = 1
    """Completions per prompt."""
    temperature: NonNegativeFloat = 0.0
    """0 always takes the most likely token; n is then 1 in effect."""
    top_p: float = Field(1.0, gt=0, le=1)
    """Draw only from the most likely tokens that together have this share; no effect at temperature
    0."""
    max_new_tokens: PositiveInt = 80
    """A completion that has not ended by then is truncated, and marked as truncated."""
    stop: tuple[str, ...] = ()
    """A completion ends before the first of these; it does not count as truncated."""
    seed: NonNegativeInt = 0
    """Seed of the draws; no effect at temperature 0."""


@dataclass(frozen=True)
class CompletionOutput:
    """What an engine generates for a prompt. A `Completion` is the same for a benchmark's task."""

    text: str
    tokens: int
    cut: bool  # truncated at the token limit, not ended by the model or a stop word
    # Its share of the batches' time; for an endpoint, the time from request to reply.
    seconds: float = field(default=0.0, compare=False)


# Takes the place and the completion of each row of a new batch.
OnCompletions = Callable[[list[tuple[int, CompletionOutput]]], None]
