"""Places to run programs. A backend opens workers; each takes one job and gives one answer, both JSON in frames (see sandbox/worker.py)."""

from __future__ import annotations

from typing import Protocol


class WorkerDied(RuntimeError):
    """The worker is gone, or answered with what is no answer."""


class Channel(Protocol):
    """One live worker. Used by one thread at a time."""

    isolation: str

    def ask(self, payload: bytes, timeout_s: float) -> bytes:
        """Raises WorkerDied when no answer comes: the worker is to be closed then."""

    def close(self) -> None:
        """Ends the worker and everything below it. May be called twice."""


class Backend(Protocol):
    def open(self) -> Channel:
        """Starts a worker. Raises IsolationError when this place does not grant the isolation asked for."""

    def close(self) -> None:
        """Removes what workers that were killed have left."""
