"""The engines behind the gateway: one file for each, with an `Engine`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

Chat = list[dict[str, str]]


@dataclass(frozen=True)
class Ask:
    """One request. `temperature` 0 takes the most likely token each time, as the gate's evaluation
    does; `seed` None draws a new seed for each request.
    """

    chat: Chat | str  # a string is continued unchanged, without a chat template
    max_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int | None = None
    stop: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    text: str
    prompt_tokens: int
    completion_tokens: int
    finish_reason: Literal["stop", "length"]


class TooLong(ValueError):
    """The prompt leaves no space for a completion within the model's positions."""


class Engine(Protocol):
    def answer(self, ask: Ask) -> Answer:
        """Generate a completion. Called from many threads. Raises TooLong."""
        ...
