"""The engines behind the gateway: each file of this folder is one, with an `ENGINE` that opens a
checkpoint folder. Its file's name is its name. Only the engine in use is imported.

Engines of evaluations: evaluation/generation/; of rollouts: verl_jobs/config/scale.py.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

Chat = list[dict[str, str]]


@dataclass(frozen=True)
class EngineRequest:
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
class EngineReply:
    """One completion with its token counts."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    finish_reason: Literal["stop", "length"]


class TooLong(ValueError):
    """The prompt leaves no space for a completion within the model's positions."""


class Engine(Protocol):
    def complete(self, request: EngineRequest) -> EngineReply:
        """Generate a completion. Called from many threads. Raises TooLong."""
        ...


def engine_of(name: str) -> Callable[[Path], Engine]:
    """Return the function that opens a checkpoint folder. Raises ValueError for an unknown name."""
    known = sorted(module.name for module in pkgutil.iter_modules(__path__))
    if name not in known:
        raise ValueError(f"engine: no {name!r}: known are {', '.join(known)}")
    opens: Callable[[Path], Engine] = importlib.import_module(f"{__name__}.{name}").ENGINE
    return opens
