"""`_multiprocessing` for programs on a level without /dev/shm: its semaphores lie in memory that
forked processes share, and have no name.

Other parts of `multiprocessing` that need /dev/shm use the program's own folder instead.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import threading
import time
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

_libc = ctypes.CDLL(None, use_errno=True)
_RECURSIVE = 0
_SIZE = 32  # of sem_t


class _Time(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class SemLock:
    """Like CPython's (Modules/_multiprocessing/semaphore.c), for the start method fork."""

    SEM_VALUE_MAX = 2**31 - 1

    def __init__(self, kind: int, value: int, maxvalue: int, name: str, unlink: bool) -> None:
        import mmap

        if not unlink:
            raise OSError(
                errno.ENOSYS,
                "this isolation level (bare) has no named semaphores: multiprocessing works by "
                "fork alone, or on userns and root",
            )
        self.kind, self.maxvalue, self.name = kind, maxvalue, None
        self._memory = mmap.mmap(-1, _SIZE)
        self._at = (ctypes.c_char * _SIZE).from_buffer(self._memory)
        self._count_here, self._thread = 0, 0
        self._done(_libc.sem_init(self._at, 1, value))

    @property
    def handle(self) -> int:
        return ctypes.addressof(self._at)

    def acquire(self, block: bool = True, timeout: float | None = None) -> bool:
        if self.kind == _RECURSIVE and self._is_mine():
            self._count_here += 1
            return True
        if not self._taken(block, timeout):
            return False
        self._count_here += 1
        self._thread = threading.get_ident()
        return True

    def _taken(self, block: bool, timeout: float | None) -> bool:
        until = time.time() + max(0.0, timeout or 0.0)
        moment = _Time(int(until), int(until % 1 * 1e9))
        while _libc.sem_trywait(self._at):
            if not block:
                return False
            wait = (
                _libc.sem_wait(self._at)
                if timeout is None
                else _libc.sem_timedwait(self._at, ctypes.byref(moment))
            )
            if wait == 0:
                return True
            if (number := ctypes.get_errno()) == errno.ETIMEDOUT:
                return False
            if number != errno.EINTR:
                self._done(wait)
        return True

    def release(self) -> None:
        if self.kind == _RECURSIVE:
            if not self._is_mine():
                raise AssertionError("attempt to release recursive lock not owned by thread")
            if self._count_here > 1:
                self._count_here -= 1
                return
        elif self._get_value() >= self.maxvalue:
            raise ValueError("semaphore or lock released too many times")
        self._done(_libc.sem_post(self._at))
        self._count_here -= 1

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def _count(self) -> int:
        return self._count_here

    def _is_mine(self) -> bool:
        return self._count_here > 0 and self._thread == threading.get_ident()

    def _get_value(self) -> int:
        value = ctypes.c_int()
        self._done(_libc.sem_getvalue(self._at, ctypes.byref(value)))
        return value.value

    def _is_zero(self) -> bool:
        return self._get_value() == 0

    def _after_fork(self) -> None:
        self._count_here = 0

    def _done(self, result: int) -> None:
        if result:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def sem_unlink(name: str) -> None:
    """Always fail: no semaphore has a name."""
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)


class _Finder:
    """Finds `multiprocessing.heap`, whose memory is a file."""

    @staticmethod
    def find_spec(name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if (
            name != "multiprocessing.heap"
            or (spec := PathFinder.find_spec(name, path)) is None
            or spec.loader is None
        ):
            return None
        load = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            load(module)
            module.Arena._dir_candidates = []

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def install() -> None:
    """Install the module for this process and its forks."""
    sys.modules["_multiprocessing"] = sys.modules[__name__]
    sys.meta_path.insert(0, _Finder)  # type: ignore[arg-type]
