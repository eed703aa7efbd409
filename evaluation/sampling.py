"""How completions are drawn, and what a prompt is: settings that every engine shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, NonNegativeInt, PositiveInt

if TYPE_CHECKING:
    pass


Chat = list[dict[str, str]]


Prompt = Chat | str  # a text is asked as it is: a base model goes on with it


Progress = Callable[[int, int], None]  # done, of


class Sampling(BaseModel):
    """How answers are drawn."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    n: PositiveInt = 1
    """Answers a prompt."""
    temperature: NonNegativeFloat = 0.0
    """0 takes the most likely token each time, then n is 1 in effect."""
    top_p: float = Field(1.0, gt=0, le=1)
    """Draws are made from the most likely tokens that together have this share; without effect at temperature 0."""
    max_new_tokens: PositiveInt = 80
    """An answer that has not ended by then is cut, and marked so."""
    stop: tuple[str, ...] = ()
    """An answer ends before the first of these; that is no cut by length."""
    seed: NonNegativeInt = 0
    """Of the draws; without effect at temperature 0."""


@dataclass(frozen=True)
class Answer:
    text: str
    tokens: int
    cut: bool  # ended by length, not by the model or a stop word
    seconds: float = field(
        default=0.0, compare=False
    )  # its share of the time that the batches took, or from question to answer


Answers = Callable[[list[tuple[int, Answer]]], None]  # (place, answer) of those that have just come
