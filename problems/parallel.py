"""Apply the same work to many parts, in this process or in several.

Each process receives the work once, then one part at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class ParallelMap(Protocol):
    """Yields one result per part, in any order. Work, parts and results can be pickled."""

    def __call__(self, work: Callable[[T], R], parts: Sequence[T]) -> Iterator[R]: ...


def parallel_map(work: Callable[[T], R], parts: Sequence[T], processes: int = 1) -> Iterator[R]:
    """Yield the results in the order of the parts, as they arrive."""
    if processes == 1 or len(parts) < 2:
        yield from map(work, parts)
    else:
        with ProcessPoolExecutor(processes, get_context("forkserver"), _set_work, (work,)) as pool:
            yield from pool.map(_run, parts)


_work: Callable[[Any], Any]


def _set_work(work: Callable[[Any], Any]) -> None:
    global _work
    _work = work


def _run(part: Any) -> Any:
    return _work(part)
