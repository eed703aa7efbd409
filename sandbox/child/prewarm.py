"""Makes forks cheap. Most of the cost of a small program is the pages that it is the first to
write.

A zygote calls both functions once, before its first fork. docs/measurements has the effect of each.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys

from sandbox.child import program
from sandbox.wire import frame

# Of CPython's allocator (Objects/obmalloc.c), as are the size classes: steps of 16 bytes up to 512.
POOL_BYTES, POOL_HEADER = 1 << 14, 48
EMPTY_BYTES = sys.getsizeof(b"")
MAX_POOLS = 8  # per size class, in case the allocator is another one

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
    """Run a small program in this process, as `program.run` would. What the interpreter creates at
    first use (type caches, `List[int]`) then exists already. Descriptors 3 to 5 are those of a
    program's process; nobody reads them.
    """
    request = os.memfd_create("rehearsal", os.MFD_CLOEXEC)
    os.write(request, b"".join(frame(text.encode()) for text in ("rehearsed", SOURCE, CALL)))
    os.dup2(request, program.REQUEST)
    os.close(request)
    program.rehearse()
    os.dup2(program.CHANNEL, program.REQUEST)


def settle() -> list[bytes]:
    """Prepare the heap so that forks share fewer of its pages and write fewer of them. glibc
    returns its free memory. The returned objects, which must be kept, fill the free blocks in used
    pools of CPython's allocator. Otherwise a program's first objects would be spread over these
    pools, and each page would be copied.
    """
    with contextlib.suppress(AttributeError):  # only in glibc
        ctypes.CDLL(None).malloc_trim(0)
    blocks: list[bytes] = []
    for size in range(EMPTY_BYTES // 16 * 16 + 16, 513, 16):
        row, last = 0, 0
        for _ in range(MAX_POOLS * POOL_BYTES // size):
            blocks.append(bytes(size - EMPTY_BYTES))
            at = id(blocks[-1])
            row, last = row + 1 if at - last == size else 1, at
            # the first three of a new pool
            if row == 3 and (at - 2 * size) % POOL_BYTES == POOL_HEADER:
                break
    return blocks
