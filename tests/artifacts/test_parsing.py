"""Source is parsed correctly when several threads parse at once."""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from artifacts import parsing

SOURCE = inspect.getsource(parsing) * 20


@pytest.fixture
def hasty() -> Iterator[None]:
    """Make threads switch as often as possible, also in the middle of a garbage collection."""
    interval, turn = sys.getswitchinterval(), lambda *_: None
    sys.setswitchinterval(1e-5)
    gc.callbacks.append(turn)
    yield
    gc.callbacks.remove(turn)
    sys.setswitchinterval(interval)


def _parsed(depth: int) -> int:
    if depth:
        return _parsed(depth - 1)
    return sum(bool(parsing.parse(SOURCE).body) for _ in range(60))


@pytest.mark.slow
@pytest.mark.usefixtures("hasty")
def test_threads_can_parse_at_the_same_time() -> None:
    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(_parsed, (0, 40))) == [60, 60]
