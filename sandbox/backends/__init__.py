"""Places to run programs. A backend opens workers. Each worker takes one job at a time and returns
one answer, both JSON in frames (see sandbox/worker_process.py).

A backend is one file of this folder with a `BackendKind`; its file's name is its name. Only the
backend in use is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from sandbox.discovery import declared, load


class WorkerDied(RuntimeError):
    """The worker is gone, or sent an invalid answer."""


class Channel(Protocol):
    """One live worker. Used by one thread at a time."""

    isolation: str
    # Prefix of the isolation that the worker writes into its reports; empty for a process of this
    # machine.
    where: str

    def send(self, payload: bytes, timeout_s: float) -> None:
        """Send a job. Raises WorkerDied if it cannot be sent; close the worker then."""

    def hear(self, timeout_s: float) -> bytes:
        """Return the answer to the job that was sent last. Raises WorkerDied if none arrives; close
        the worker then.
        """

    def close(self) -> None:
        """End the worker and all processes below it. May be called twice."""


class Backend(Protocol):
    workers: int  # how many can work at the same time here

    def open(self, number: int, of: int) -> Channel:
        """Open the channel with this number (from 0), one of those for `of` workers.

        Raises IsolationError if the requested isolation is not available here, WorkerDied if no
        worker started.
        """

    def close(self) -> None:
        """Remove what killed workers have left."""


@dataclass(frozen=True)
class BackendKind:
    """One kind of backend. opens: takes isolation level and packages of the settings."""

    opens: Callable[[str, tuple[str, ...]], Backend]


KINDS = tuple(declared(__name__, Path(__file__).parent, BackendKind))
if TYPE_CHECKING:  # a type checker cannot know the files
    Kind = str
else:
    Kind = Literal[KINDS]


def backend_of(kind: Kind, isolation: str, packages: tuple[str, ...]) -> Backend:
    """Return the backend of this kind. Raises IsolationError if the place is not available,
    ImportError if its client is not installed.
    """
    return load(f"{__name__}.{kind}", BackendKind).opens(isolation, packages)
