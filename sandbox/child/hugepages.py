"""Moves the interpreter's code into huge pages: a fork then copies one entry per two megabytes of
it, and programs have no page faults for parts of it.

Call it before the first fork, in a process with one thread. docs/measurements has the effect.
"""

from __future__ import annotations

import ctypes

HUGE = 1 << 21
READ, WRITE, EXECUTE = 1, 2, 4  # from sys/mman.h, like the next line
PRIVATE, ANONYMOUS, MAYMOVE, FIXED, MADV_HUGEPAGE = 2, 32, 1, 2, 14


def move_code() -> int:
    """Return the bytes of the interpreter's code, and of the constants next to it, that are now in
    huge pages; 0 if the kernel provides none.
    """
    try:
        with open("/sys/kernel/mm/transparent_hugepage/enabled") as file:
            if "[never]" in file.read():
                return 0
    except FileNotFoundError:  # a kernel without huge pages
        return 0
    low, high = _around(ctypes.cast(ctypes.pythonapi.Py_GetVersion, ctypes.c_void_p).value or 0)
    first, size = _up(low), high // HUGE * HUGE - _up(low)
    if size <= 0:
        return 0
    libc = ctypes.CDLL(None)
    libc.mmap.restype = libc.mremap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_long,
    ]
    libc.mremap.argtypes = [
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_void_p,
    ]
    libc.munmap.argtypes, libc.madvise.argtypes = (
        [ctypes.c_void_p, ctypes.c_size_t],
        [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int],
    )
    libc.mprotect.argtypes = libc.madvise.argtypes
    room = libc.mmap(None, size + HUGE, READ | WRITE, PRIVATE | ANONYMOUS, -1, 0)
    if room == ctypes.c_void_p(-1).value:
        return 0
    copy = _up(room)
    libc.madvise(copy, size, MADV_HUGEPAGE)
    ctypes.memmove(copy, first, size)
    moved = _huge_bytes(copy) == size and not libc.mprotect(copy, size, READ | EXECUTE)
    # Atomically, while this code is running: only libc runs in between.
    if moved and libc.mremap(copy, size, size, MAYMOVE | FIXED, first) == first:
        libc.munmap(room, copy - room)
        libc.munmap(copy + size, room + HUGE - copy)
        return size
    libc.munmap(room, size + HUGE)
    return 0


def _up(address: int) -> int:
    return -(-address // HUGE) * HUGE


def _around(address: int) -> tuple[int, int]:
    """Return the bounds of the adjoining mappings of one file around this address that are not
    writable.
    """
    low = high = 0
    name = ""
    with open("/proc/self/maps") as maps:
        for line in maps:
            span, rights, *_, path = line.split(maxsplit=5)
            begin, end = (int(part, 16) for part in span.split("-"))
            if begin != high or path != name or not rights.startswith("r-"):
                if low <= address < high:
                    break
                low, name = begin, path if rights.startswith("r-") else ""
            high = end
    return low, high


def _huge_bytes(address: int) -> int:
    """Return the bytes in huge pages of the mapping that contains this address."""
    inside = False
    with open("/proc/self/smaps") as maps:
        for line in maps:
            name, *rest = line.split()
            if not name.endswith(":"):
                begin, end = (int(part, 16) for part in name.split("-"))
                inside = begin <= address < end
            elif inside and name == "AnonHugePages:":
                return int(rest[0]) * 1024
    return 0
