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

from sandbox.cores import usable_cores

BATCH_S, CASE_S = 60.0, 0.05  # of a batch, and more for each case; those not begun have no verdict
WALL_S = 60.0  # of one answer: much longer than the CPU time that a worker allows
TRIES = 2  # processes tried per answer


@dataclass(frozen=True)
class Case:
    """An answer and its reference answers.

    statement: text of the question, whose formulas do not count as answers. any_form: the answer
    need not be evaluated. Raises ValueError for a case without a reference answer.
    """

    references: tuple[str, ...]
    answer: str
    statement: str = ""
    any_form: bool = False

    def __post_init__(self) -> None:
        if not any(map(str.strip, self.references)):
            raise ValueError(
                f"no reference answer in {list(self.references)!r}: give a non-empty text"
            )


class Verifier:
    """Verify batches of answers. Safe to use from threads.

    The processes start when they are needed.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or usable_cores()
        self._free = threading.BoundedSemaphore(self.workers)
        self._idle: list[_Process] = []
        os.register_at_fork(after_in_child=self._idle.clear)

    def equal_all(self, cases: Sequence[Case], batch_s: float = BATCH_S) -> list[bool | None]:
        """Return verdicts in the order of the cases, None for no verdict."""
        deadline = time.monotonic() + batch_s + CASE_S * len(cases)
        verdicts: dict[Case, bool | None] = {case: case.answer in case.references for case in cases}
        unresolved = [case for case, same in verdicts.items() if case.answer.strip() and not same]
        with ThreadPoolExecutor(self.workers, "math-verifier") as threads:
            decided = threads.map(lambda case: self._decide(case, deadline), unresolved)
            verdicts |= dict(zip(unresolved, decided, strict=True))
        return [verdicts[case] for case in cases]

    def close(self) -> None:
        """Stop the processes."""
        while self._idle:
            self._idle.pop().close()

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
        """Return an idle process, else a new one."""
        with suppress(IndexError):
            return self._idle.pop()
        return _Process()


class _Process:
    """A worker and the pipes to it."""

    def __init__(self) -> None:
        script, root = Path(__file__).with_name("worker.py"), Path(__file__).parents[2]
        self.process = subprocess.Popen(
            [sys.executable, "-I", str(script), str(root), str(os.getpid())],
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
