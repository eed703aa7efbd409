"""Call a function in a process of its own: torch and a model stay out of a run's process.

On a cluster a run's pod has little memory, and no model runs in it (assets/generation.py).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def apart(function: Callable[P, R], *arguments: P.args, **options: P.kwargs) -> R:
    """Return its result, or raise its exception. In this process where torch already is."""
    if "torch" in sys.modules:
        return function(*arguments, **options)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments, **options).result()
