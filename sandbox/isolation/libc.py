"""System calls that Python has no function for, by libc."""

from __future__ import annotations

import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)


def call(name: str, *args: object) -> None:
    """Call a function of libc. Raises OSError if it fails."""
    if getattr(libc, name)(*args) == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
