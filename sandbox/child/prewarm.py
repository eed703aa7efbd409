"""Makes forks cheap. Most of the cost of a small program is the pages that it is the first to
write.

A zygote calls `rehearse` once, before its first fork.
"""

from __future__ import annotations

import os

from sandbox.child import program
from sandbox.wire import frame

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
