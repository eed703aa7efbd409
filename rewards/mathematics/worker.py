"""Process of `verifier.py` that decides answers, run by its path: `worker.py ROOT OWNER`.

Reads lines `{"references", "answer", "statement", "any_form"}` and writes a line for each: "right",
or "wrong". An answer that takes more CPU time or memory than allowed is wrong; if that cannot be
decided from inside, the process ends by SIGVTALRM. It ends with its owner.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import resource
import select
import signal
import sys
from typing import Any

CPU_S = 2.0  # of one answer; after twice that the kernel ends the process
MEMORY = 2 << 30  # bytes of address space
WATCH_S = 1.0  # between two checks that the owner lives


class OutOfTimeError(BaseException):
    """One answer took too long. Not an Exception: math-verify and sympy catch those."""


def decide(case: dict[str, Any]) -> bool:
    """Return whether the answer equals a reference answer. If it makes the comparison fail, no."""
    from rewards.mathematics.checker import accepted

    signal.setitimer(signal.ITIMER_VIRTUAL, 2 * CPU_S)
    signal.setitimer(signal.ITIMER_PROF, CPU_S)
    try:
        return any(
            accepted(reference, case["answer"], case["statement"], case["any_form"])
            for reference in case["references"]
            if reference.strip()
        )
    except (Exception, OutOfTimeError):
        return False
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _out_of_time(*_: object) -> None:
    raise OutOfTimeError


def main() -> None:
    root, owner = sys.argv[1], int(sys.argv[2])
    sys.path.insert(0, root)
    logging.disable(logging.CRITICAL)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, _out_of_time)
    from rewards.mathematics import checker  # noqa: F401

    gc.freeze()
    while True:
        while not select.select([0], [], [], WATCH_S)[0]:
            if os.getppid() != owner:
                return
        if not (line := sys.stdin.buffer.readline()):
            return
        os.write(1, b"right\n" if decide(json.loads(line)) else b"wrong\n")


if __name__ == "__main__":
    main()
