"""What makes a fork cheap: most of what a small program costs are the pages that it is the first to write.

A zygote does both once, before its first fork. docs/measurements has what each is worth.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys

from sandbox import program
from sandbox.wire import frame

POOL_BYTES, POOL_HEADER = (
    1 << 14,
    48,
)  # of CPython's allocator (Objects/obmalloc.c), as are the size classes: steps of 16 bytes up to 512
EMPTY_BYTES = sys.getsizeof(b"")
MOST_POOLS = 8  # a class, where the allocator is another

SOURCE = '''from typing import Any, Dict, List, Optional, Tuple


def rehearsed(words: List[str], number: int = 3) -> List[int]:
    """As short as most are."""
    found: Dict[str, int] = {}
    for at, word in enumerate(sorted(words)):
        if word not in found and len(word) <= number:
            found[word.lower()] = found.get(word, 0) + at % 2
    return [value for _, value in found.items()] + list(map(int, "12")) + [sum(range(number)) // 2]
'''
CALL = '[[["b","a","abc"]],{"number":3}]'


def rehearse() -> None:
    """Runs a small program in this process, as `program.run` would: what the interpreter makes at its first use (caches of types, `List[int]`) is
    there then. Descriptors 3 to 5 are what a program's process has there, and nobody listens."""
    request = os.memfd_create("rehearsal", os.MFD_CLOEXEC)
    os.write(request, b"".join(frame(text.encode()) for text in ("rehearsed", SOURCE, CALL)))
    os.dup2(request, program.REQUEST)
    os.close(request)
    program.rehearse()
    os.dup2(program.CHANNEL, program.REQUEST)


def settle() -> list[bytes]:
    """Makes the heap such that few of its pages are shared and fewer are written: what glibc has free is given back, and objects, to be kept, take
    what is free in the pools of CPython's allocator that are in use. A program's first objects would lie all over these, each page a copy."""
    with contextlib.suppress(AttributeError):  # of glibc alone
        ctypes.CDLL(None).malloc_trim(0)
    kept: list[bytes] = []
    for size in range(EMPTY_BYTES // 16 * 16 + 16, 513, 16):
        row, last = 0, 0
        for _ in range(MOST_POOLS * POOL_BYTES // size):
            kept.append(bytes(size - EMPTY_BYTES))
            at = id(kept[-1])
            row, last = row + 1 if at - last == size else 1, at
            if (
                row == 3 and (at - 2 * size) % POOL_BYTES == POOL_HEADER
            ):  # the first three of a new one
                break
    return kept
