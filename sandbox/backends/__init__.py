"""Places to run programs. A backend opens workers; each takes one job and gives one answer, both JSON in frames (see sandbox/worker.py)."""

from __future__ import annotations

from typing import Literal, Protocol

Kind = Literal["local", "docker", "ray"]


class WorkerDied(RuntimeError):
    """The worker is gone, or answered with what is no answer."""


class Channel(Protocol):
    """One live worker. Used by one thread at a time."""

    isolation: str
    where: str  # stands before the isolation that the worker stamps into its reports; empty for a process of this machine

    def send(self, payload: bytes, timeout_s: float) -> None:
        """A job. Raises WorkerDied when it cannot be handed over: the worker is to be closed then."""

    def hear(self, timeout_s: float) -> bytes:
        """The answer to the job that was sent last. Raises WorkerDied when none comes: the worker is to be closed then."""

    def close(self) -> None:
        """Ends the worker and everything below it. May be called twice."""


class Backend(Protocol):
    workers: int  # how many this place can have at work at once

    def channels(self, workers: int) -> int:
        """How many to open so that this many programs run at once."""

    def open(self, number: int, of: int) -> Channel:
        """Starts the channel with this number (from 0), of those for so many workers.

        Raises IsolationError when this place does not grant the isolation asked for, WorkerDied when none came up.
        """

    def close(self) -> None:
        """Removes what workers that were killed have left."""


def backend_of(kind: Kind, isolation: str, packages: tuple[str, ...]) -> Backend:
    """Raises IsolationError where there is no such place, ImportError where its client is not installed."""
    if kind == "docker":
        from sandbox.backends.docker import DockerBackend

        return DockerBackend(isolation, packages)
    if kind == "ray":
        from sandbox.backends.ray import RayBackend

        return RayBackend(isolation, packages)
    from sandbox.backends.local import LocalBackend

    return LocalBackend(isolation, packages)
