"""Worker process of `verifier.py`, run by its path: `worker.py ROOT OWNER WORKERS`.

Reads lines `{"id", "deadline", "references", "answer", "statement", "any_form"}`. Writes lines
`id verdict`, where the verdict is equal, different, late or lost.
Answers are decided in forks with limits, so that none can affect another. A fork takes several
answers, and ends at the first that exceeds a limit. That answer gets a second, longer attempt after
all others. The worker ends with its owner.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import resource
import selectors
import signal
import sys
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

# CPU time of a first and of a second attempt, and wall time of either.
QUICK_S, CPU_S, WALL_S = 0.2, 0.8, 30.0
MEMORY = 1 << 30  # bytes of address space per fork
MOST = 16  # answers that one fork decides
WATCH_S = 0.5  # between two checks that the owner lives
EQUAL, DIFFERENT = b"=", b"!"
PR_SET_PDEATHSIG = 1

Case = dict[str, Any]


@dataclass(frozen=True)
class Fork:
    """A process that decides cases one after the other; `pending` are those without a verdict."""

    process: int
    pending: deque[Case]
    cpu_s: float


class Worker:
    """Run up to `max_forks` forks at once, first attempts before second ones."""

    def __init__(self, owner: int, max_forks: int) -> None:
        self.owner, self.max_forks = owner, max_forks
        self.first: deque[Case] = deque()
        self.second: deque[Case] = deque()
        self.running: dict[int, Fork] = {}  # by the file descriptor of its verdicts
        self.ready = selectors.DefaultSelector()
        self.libc = ctypes.CDLL(None)

    def serve(self) -> None:
        """Process input lines until the input ends or the owner is gone."""
        self.ready.register(0, selectors.EVENT_READ)
        rest = b""
        while os.getppid() == self.owner:
            for key, _ in self.ready.select(WATCH_S):
                if key.fd in self.running:
                    self.receive(key.fd)
                elif data := os.read(0, 1 << 16):
                    *lines, rest = (rest + data).split(b"\n")
                    self.first.extend(map(json.loads, lines))
                else:
                    return
            while len(self.running) < self.max_forks and (self.first or self.second):
                self.begin()

    def begin(self) -> None:
        """Fork for a share of the first attempts, or for one second attempt.

        A case whose deadline has passed is late.
        """
        queue, cpu_s = (self.first, QUICK_S) if self.first else (self.second, CPU_S)
        share = min(MOST, -(-len(queue) // self.max_forks)) if self.first else 1
        cases = [queue.popleft() for _ in range(share)]
        for case in cases:
            if time.monotonic() > case["deadline"]:
                write_verdict(case, "late")
        cases = [case for case in cases if time.monotonic() <= case["deadline"]]
        if not cases:
            return
        verdicts, write = os.pipe()
        child = os.fork()
        if child == 0:
            self.decide(cases, cpu_s, write)
        os.close(write)
        self.running[verdicts] = Fork(child, deque(cases), cpu_s)
        self.ready.register(verdicts, selectors.EVENT_READ)

    def decide(self, cases: list[Case], cpu_s: float, write: int) -> None:
        """In the fork: set the limits, decide the cases, write one byte for each verdict.

        If an answer makes the comparison raise any exception, it is different.
        """
        try:
            self.libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            from rewards.mathematics.equality import accepted

            for case in cases:
                signal.setitimer(signal.ITIMER_PROF, cpu_s)
                signal.setitimer(signal.ITIMER_REAL, WALL_S)
                verdict = DIFFERENT
                with suppress(Exception):
                    references = [text for text in case["references"] if text.strip()]
                    if any(
                        accepted(text, case["answer"], case["statement"], case["any_form"])
                        for text in references
                    ):
                        verdict = EQUAL
                os.write(write, verdict)
        finally:
            os._exit(0)

    def receive(self, verdicts: int) -> None:
        """Forward verdicts, and handle the end of a fork.

        The case that ended the fork is tried again or is different; the rest returns to the queue.
        """
        fork = self.running[verdicts]
        if decided := os.read(verdicts, MOST):
            for verdict in decided:
                write_verdict(
                    fork.pending.popleft(), "equal" if verdict == EQUAL[0] else "different"
                )
            return
        del self.running[verdicts]
        self.ready.unregister(verdicts)
        os.close(verdicts)
        _, status = os.waitpid(fork.process, 0)
        if not fork.pending:
            return
        culprit, code = fork.pending.popleft(), os.waitstatus_to_exitcode(status)
        self.first.extendleft(reversed(fork.pending))
        if code == -signal.SIGPROF and fork.cpu_s < CPU_S:
            self.second.append(culprit)
        else:
            # An early exit, SIGKILL and SIGALRM mean that the machine has no memory or time left:
            # that is not the answer's fault.
            write_verdict(
                culprit, "lost" if code in (0, -signal.SIGKILL, -signal.SIGALRM) else "different"
            )


def write_verdict(case: Case, verdict: str) -> None:
    os.write(1, f"{case['id']} {verdict}\n".encode())


def main() -> None:
    root, owner, max_forks = sys.argv[1:]
    sys.path.insert(0, root)
    from rewards.mathematics.equality import accepted

    # Load everything before the first fork.
    accepted("\\frac{x^2 + \\sqrt{2}}{3}", "0.5 + \\sin{x}")
    gc.freeze()
    Worker(int(owner), int(max_forks)).serve()


if __name__ == "__main__":
    main()
