"""The engines behind the gateway: each file of this folder is one, with an `ENGINE` that opens a
version of the ledger. Its file's name is its name. Only the engine in use is imported.

Engines of evaluations: evaluation/generation/; of rollouts: verl_jobs/config/scale.py.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable

from resources.config.serving import Serving
from resources.registry.ledger import Entry
from serving.completion import (
    Chat,
    Delta,
    Ending,
    Engine,
    EngineFailed,
    EngineReply,
    EngineRequest,
    TokenLogprob,
    TooLong,
    Unsupported,
    complete,
    gather,
)

__all__ = [
    "Chat",
    "Delta",
    "Ending",
    "Engine",
    "EngineFailed",
    "EngineReply",
    "EngineRequest",
    "TokenLogprob",
    "TooLong",
    "Unsupported",
    "complete",
    "engine_of",
    "gather",
]


def engine_of(name: str) -> Callable[[Entry, Serving], Engine]:
    """Return the function that opens a version. Raises ValueError for an unknown name."""
    known = sorted(module.name for module in pkgutil.iter_modules(__path__))
    if name not in known:
        raise ValueError(f"engine: no {name!r}: known are {', '.join(known)}")
    opens: Callable[[Entry, Serving], Engine] = importlib.import_module(f"{__name__}.{name}").ENGINE
    return opens
