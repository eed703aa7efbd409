"""One task at a time beside the training, and the state of a rank that it may write meanwhile.

The training changes its tensors in place. So a rank copies its state to host memory, and the files
are written from the copy while the next step runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from verl_jobs.metrics.machine import available_bytes

ROOM = 2  # the copies of a machine's ranks take at most one part in so many of its free memory


class Background:
    """A daemon thread for one task at a time; `wait` raises what the task raised."""

    def __init__(self, name: str) -> None:
        self._name, self._thread = name, threading.Thread()
        self._error: BaseException | None = None

    def start(self, task: Callable[[], None]) -> None:
        """Start the task after the one before it. Raises the error of that one."""
        self.wait()

        def run() -> None:
            try:
                task()
            except BaseException as error:  # raised again by `wait`
                self._error = error

        self._thread = threading.Thread(target=run, daemon=True, name=self._name)
        self._thread.start()

    def wait(self) -> None:
        """Wait for the task's end. Raises its error, once."""
        if self._thread.ident is not None:
            self._thread.join()
        if error := self._error:
            self._error = None
            raise error


def fits(state: Any, ranks: int) -> bool:
    """Whether this machine has room for a copy of the state of each of its ranks."""
    return ROOM * ranks * size_of(state) <= available_bytes()


def size_of(state: Any) -> int:
    """Return the bytes of all tensors of a state tree that lie on this rank."""
    if isinstance(state, dict):
        return sum(map(size_of, state.values()))
    if isinstance(state, list | tuple):
        return sum(map(size_of, state))
    return _local(state).nbytes if hasattr(state, "untyped_storage") else 0


def copy_to_host(state: Any, _done: dict[Any, Any] | None = None) -> Any:
    """Return a state tree whose tensors, shards too, are copies in host memory.

    Tensors that share their memory, such as tied weights, share one copy.
    """
    done = {} if _done is None else _done
    if isinstance(state, dict):
        return type(state)((name, copy_to_host(value, done)) for name, value in state.items())
    if isinstance(state, list):
        return [copy_to_host(value, done) for value in state]
    if not hasattr(state, "untyped_storage"):
        return state
    local = _local(state)
    place = (local.data_ptr(), local.dtype, tuple(local.shape), local.stride())
    if not local.numel() or place not in done:
        done[place] = state.detach().to("cpu", copy=True)
    return done[place]


def _local(tensor: Any) -> Any:
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor
