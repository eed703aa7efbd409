"""Verify final answers to mathematics questions in batches.

In: reference answers and an answer, in LaTeX or plain text. Out: yes, no, or no verdict.
A separate process (`worker.py`) decides the answers in forks with limits on CPU time and
memory, as many at once as there are cores. An answer that exceeds a limit is wrong. If the process
is lost, or the time for the whole batch is up, there is no verdict. No answer is evaluated as
Python.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, TimeoutError
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from rewards.mathematics.text import same_text

# Wall time of a batch, and extra time for each case. Cases not begun by then have no verdict.
BATCH_S, CASE_S = 60.0, 0.05
GRACE_S = 40.0  # extra time for cases that have begun: longer than the worker lets one answer run
TRIES = 2  # verifier processes tried per answer
LOST = "lost"


class VerifierDied(RuntimeError):
    """The verifier was lost or ran out of time: a failure of ours."""


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
    """Verify one answer (`equal`) or a batch (`equal_all`). Safe to use from threads.

    The process starts at the first call, and again if it has died.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or len(os.sched_getaffinity(0))
        self._lock = threading.Lock()
        self._server: _Server | None = None

    def equal(
        self, references: Sequence[str], answer: str, statement: str = "", any_form: bool = False
    ) -> bool:
        """Return whether the answer equals one of the reference answers.

        Raises ValueError where there is no reference answer, VerifierDied where there is no
        verdict.
        """
        [verdict] = self.equal_all([Case(tuple(references), answer, statement, any_form)])
        if verdict is None:
            raise VerifierDied(
                "the mathematics verifier ended twice on one answer: check that sympy is installed "
                "and that memory is free"
            )
        return verdict

    def equal_all(self, cases: Sequence[Case], batch_s: float = BATCH_S) -> list[bool | None]:
        """Return verdicts in the order of the cases, None for no verdict.

        Raises ValueError for a case without a reference answer.
        """
        deadline = time.monotonic() + batch_s + CASE_S * len(cases)
        verdicts = {case: _by_text(case) for case in cases}
        unresolved = [case for case, verdict in verdicts.items() if verdict is None]
        for _ in range(TRIES):
            futures = {case: self._ask(case, deadline) for case in unresolved}
            results = {case: _result(future, deadline) for case, future in futures.items()}
            verdicts |= {
                case: {"equal": True, "different": False}.get(result)
                for case, result in results.items()
            }
            unresolved = [case for case, result in results.items() if result == LOST]
        return [verdicts[case] for case in cases]

    def close(self) -> None:
        """Stop the process."""
        with self._lock:
            server, self._server = self._server, None
        if server:
            server.close()

    def _ask(self, case: Case, deadline: float) -> Future[str]:
        with self._lock:
            if self._server is None or self._server.dead or self._server.owner != os.getpid():
                self._server = _Server(self.workers)
            server = self._server
        return server.ask(case, deadline)


def _by_text(case: Case) -> bool | None:
    """Return the verdict where the texts alone give one."""
    references = [text for text in case.references if text.strip()]
    if not references:
        raise ValueError(
            f"no reference answer in {list(case.references)!r}: give at least one non-empty text"
        )
    if not case.answer.strip():
        return False
    verdicts = [same_text(text, case.answer) for text in references]
    return True if True in verdicts else None if None in verdicts else False


def _result(future: Future[str], deadline: float) -> str:
    try:
        return future.result(max(0.0, deadline - time.monotonic()) + GRACE_S)
    except TimeoutError:
        return "late"


class _Server:
    """The process, and a thread that forwards its verdicts. The process ends with its owner."""

    def __init__(self, workers: int) -> None:
        script, root = Path(__file__).with_name("worker.py"), Path(__file__).parents[2]
        self.owner, self.dead = os.getpid(), False
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self._pending: dict[int, Future[str]] = {}
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(script), str(root), str(self.owner), str(workers)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        threading.Thread(target=self._listen, name="math-verifier", daemon=True).start()

    def ask(self, case: Case, deadline: float) -> Future[str]:
        future: Future[str] = Future()
        with self._lock:
            if self.dead:
                future.set_result(LOST)
                return future
            number = id(future)
            self._pending[number] = future
        line = json.dumps({"id": number, "deadline": deadline} | asdict(case)) + "\n"
        assert self._process.stdin
        # With a broken or closed pipe the write fails: the listener reports the loss.
        with self._writing, suppress(OSError, ValueError):
            self._process.stdin.write(line)
            self._process.stdin.flush()
        return future

    def close(self) -> None:
        self._process.kill()

    def _listen(self) -> None:
        """Forward verdicts until the process has ended; then mark all pending answers as lost."""
        assert self._process.stdin and self._process.stdout
        for line in self._process.stdout:
            number, verdict = line.split()
            self._pending.pop(int(number)).set_result(verdict)
        with self._lock:
            self.dead = True
        self._process.kill()
        self._process.wait()
        with self._writing, suppress(OSError):
            self._process.stdin.close()
        self._process.stdout.close()
        for future in self._pending.values():
            future.set_result(LOST)
