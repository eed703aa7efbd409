"""The engines behind the gateway: each file of this folder with an `EngineKind` is one, and its
file's name is its name. Only the engine in use is imported.

Engines of evaluations: evaluation/generation/; of rollouts: verl_jobs/config/scale.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from resources.config.serving import Serving
from resources.registry.ledger import Entry
from sandbox.discovery import declared, load
from serving.completion import Engine


@dataclass(frozen=True)
class EngineKind:
    """One kind of engine. opens: returns an engine for a version of the ledger."""

    opens: Callable[[Entry, Serving], Engine]


def engine_of(name: str) -> Callable[[Entry, Serving], Engine]:
    """Return the function that opens a version. Raises ValueError for an unknown name."""
    known = declared(__name__, Path(__file__).parent, EngineKind)
    if name not in known:
        raise ValueError(f"engine: no {name!r}: known are {', '.join(known)}")
    return load(known[name].module, EngineKind).opens
