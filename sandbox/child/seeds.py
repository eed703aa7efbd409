"""Varies what a correct program's verdict must not depend on, for a job with a seed other than 0.

Seed 0 is for judging: each run is the same. Another seed changes the draws of `random`, the hash
seed (order of sets), the clock, the time zone, the addresses of objects and when threads
switch. The hash seed is fixed when a process starts, so seeds share the zygotes of
sandbox/seeding.py.
"""

from __future__ import annotations

import ctypes
import datetime
import gc
import random
import sys
import threading
import time
from typing import Any

# odd, and more than a year: hour, weekday, month, year and parity differ
CLOCK_STEP_S = 41_234_567
BLOCKS = 1000  # more than the compilation of a program takes
MAX_BYTES = 128  # of the shuffled size classes of CPython's allocator, in steps of 16
PAUSES = 100  # of a program's threads, so that others run in between
PAUSE_S = 1e-5


def enter(seed: int) -> None:
    """Set the seed in a program's process, before the program is read."""
    for name in {"random", "numpy.random"} & set(sys.modules):
        sys.modules[name].seed(seed)
    draws = random.Random(seed)
    _move_clock(seed * CLOCK_STEP_S)
    _shuffle_free_blocks(draws)
    threading.setprofile(_pauses(draws))


def _move_clock(by_s: int) -> None:
    """Move what reads the time of day, but no clock that measures durations."""
    clock, clock_ns, clock_gettime = time.time, time.time_ns, time.clock_gettime
    asctime, strftime = time.asctime, time.strftime
    time.time = lambda: clock() + by_s
    time.time_ns = lambda: clock_ns() + by_s * 10**9
    time.clock_gettime = lambda which: (
        time.time() if which == time.CLOCK_REALTIME else clock_gettime(which)
    )
    for name in ("localtime", "gmtime", "ctime"):
        setattr(time, name, _of_seconds(getattr(time, name)))
    time.asctime = lambda at=None: asctime(time.localtime() if at is None else at)  # type: ignore
    time.strftime = lambda form, at=None: strftime(form, time.localtime() if at is None else at)  # type: ignore
    # `today` calls time.time; these two read the clock themselves
    kind = datetime.datetime
    _replace(kind, "now", classmethod(lambda own, tz=None: own.fromtimestamp(time.time(), tz)))
    _replace(kind, "utcnow", classmethod(lambda own: own.utcfromtimestamp(time.time())))


def _of_seconds(function: Any) -> Any:
    return lambda at=None: function(time.time() if at is None else at)


def _replace(kind: type, name: str, value: object) -> None:
    """Replace an attribute of a built-in type, which Python does not let a program change."""
    gc.get_referents(kind.__dict__)[0][name] = value
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))


def _pauses(draws: random.Random) -> Any:
    """Return a profiler of threads that lets another one run before some of their calls."""
    left, sleep = [PAUSES], time.sleep

    def pause(*_: object) -> None:
        if left[0] <= 0:
            sys.setprofile(None)
        elif draws.random() < 0.1:
            left[0] -= 1
            sleep(PAUSE_S)

    return pause


def _shuffle_free_blocks(draws: random.Random) -> None:
    """Make the next small objects get addresses in another order."""
    empty = sys.getsizeof(b"")
    for size in range(16, MAX_BYTES + 1, 16):
        blocks: list[object] = [
            bytes(size - empty) if size > empty else 2**40 + at if size == 32 else object()
            for at in range(BLOCKS)
        ]
        draws.shuffle(blocks)
        while blocks:
            del blocks[-1]
