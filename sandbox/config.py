"""How many programs run at once, where, and how they are confined.

The limits of one program are `Limits` in sandbox/limits.py.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Literal, get_args

from sandbox.backends import KINDS, Kind

Level = Literal["auto", "root", "userns", "bare"]


@dataclass(frozen=True)
class SandboxConfig:
    """How many programs run at once, where, and how they are confined."""

    workers: int | None = None  # default: one per core of the machine, engine or cluster
    backend: Kind = "local"  # docker: warm containers; ray: actors across the cluster
    isolation: Level = "auto"  # auto: the highest level available; a named one is never lowered
    packages: tuple[str, ...] = ("numpy", "sortedcontainers")  # third-party packages for programs

    def __post_init__(self) -> None:
        """Raise ValueError for an unknown backend or level: a guess could confine less."""
        for name, value, known in (
            ("isolation", self.isolation, get_args(Level)),
            ("backend", self.backend, KINDS),
        ):
            if value not in known:
                near = difflib.get_close_matches(str(value), known, 2, cutoff=0.4)
                hint = f", did you mean {' or '.join(near)}" if near else ""
                raise ValueError(f"`{name}` must be one of {', '.join(known)}, got {value!r}{hint}")
