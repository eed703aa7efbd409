"""Verify final answers to mathematics questions in batches.

In: reference answers and an answer, in LaTeX or plain text. Out: yes, no, or no verdict.
Processes (`worker.py`) with limits on CPU time and memory decide, as many as there are cores. An
answer that exceeds a limit is wrong. If a process is lost, or the time for the whole batch is up,
there is no verdict. No answer is evaluated as Python.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

BATCH_S, CASE_S = 60.0, 0.05  # of a batch, and more for each case; those not begun have no verdict
WALL_S = 60.0  # of one answer: much longer than the CPU time that a worker allows
TRIES = 2  # processes tried per answer


@dataclass(frozen=True)
class Case:
    """An answer and its reference answers.

    statement: text of the question, whose formulas do not count as answers. any_form: the answer
    need not be evaluated.
    """

    references: tuple[str, ...]
    answer: str
    statement: str = ""
    any_form: bool = False


class Verifier:
    """Verify batches of answers. Safe to use from threads.

    The processes start when they are needed.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or len(os.sched_getaffinity(0))
        self._free = threading.BoundedSemaphore(self.workers)
        self._idle: list[_Process] = []

    def equal_all(self, cases: Sequence[Case], batch_s: float = BATCH_S) -> list[bool | None]:
        """Return verdicts in the order of the cases, None for no verdict.

        Raises ValueError for a case without a reference answer.
        """
        deadline = time.monotonic() + batch_s + CASE_S * len(cases)
        verdicts = {case: _by_text(case) for case in cases}
        unresolved = [case for case, verdict in verdicts.items() if verdict is None]
        with ThreadPoolExecutor(self.workers, "math-verifier") as threads:
            decided = threads.map(lambda case: self._decide(case, deadline), unresolved)
            verdicts |= dict(zip(unresolved, decided, strict=True))
        return [verdicts[case] for case in cases]

    def close(self) -> None:
        """Stop the processes that are idle and ours."""
        while self._idle:
            process = self._idle.pop()
            if process.owner == os.getpid():
                process.close()

    def _decide(self, case: Case, deadline: float) -> bool | None:
        with self._free:
            for attempt in range(TRIES):
                if time.monotonic() > deadline:
                    return None
                process = _Process() if attempt else self._process()
                verdict = process.decide(case)
                if verdict is not None:
                    self._idle.append(process)
                    return verdict
                if process.close() == -signal.SIGVTALRM:
                    return False
        return None

    def _process(self) -> _Process:
        """Return an idle process of ours, else a new one. Those of a parent are not ours."""
        with suppress(IndexError):
            while True:
                process = self._idle.pop()
                if process.owner == os.getpid():
                    return process
        return _Process()


def _by_text(case: Case) -> bool | None:
    """Return the verdict where the texts alone give one."""
    references = [reference.strip() for reference in case.references if reference.strip()]
    if not references:
        raise ValueError(
            f"no reference answer in {list(case.references)!r}: give at least one non-empty text"
        )
    if not (answer := case.answer.strip()):
        return False
    return True if answer in references else None


class _Process:
    """A worker and the pipes to it."""

    def __init__(self) -> None:
        script, root = Path(__file__).with_name("worker.py"), Path(__file__).parents[2]
        self.owner = os.getpid()
        self.process = subprocess.Popen(
            [sys.executable, "-I", str(script), str(root), str(self.owner)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self.process.stdin and self.process.stdout
        self._to, self._from = self.process.stdin, self.process.stdout

    def decide(self, case: Case) -> bool | None:
        """Return the verdict, None if the process ended or hangs."""
        try:
            self._to.write(json.dumps(asdict(case)).encode() + b"\n")
            self._to.flush()
        except OSError:
            return None
        poll = select.poll()
        poll.register(self._from, select.POLLIN)
        line = self._from.readline() if poll.poll(1000 * WALL_S) else b""
        return {b"right\n": True, b"wrong\n": False}.get(line)

    def close(self) -> int:
        """Stop the process and return its exit status, negative for a signal."""
        self.process.kill()
        with suppress(BrokenPipeError):
            self._to.close()
        self._from.close()
        return self.process.wait()
