"""Whether final answers are right, many at a time. In: right answers and an answer, LaTeX or plain. Out: yes, no, or no verdict.

A process of its own (`math_worker.py`) decides each answer in a fork with limits of CPU time and memory, as many at once as there are cores.
An answer that exceeds a limit is wrong. The loss of the process, or of time for the whole batch, is no verdict. No answer is evaluated as Python.
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

from rewards.math_text import same_text

BATCH_S, CASE_S = (
    60.0,
    0.05,
)  # wall time of a batch and more for each case: what has not begun by then has no verdict
GRACE_S = 40.0  # for what has begun: longer than the worker lets one answer run
TRIES = 2  # verifiers an answer
LOST = "lost"


class VerifierDied(RuntimeError):
    """The verifier was lost, or had no time left: a failure of ours."""


@dataclass(frozen=True)
class Case:
    """An answer with the right ones. statement: of the question, whose formulas are no answers. any_form: it need not be evaluated."""

    right: tuple[str, ...]
    answer: str
    statement: str = ""
    any_form: bool = False


class Verifier:
    """`equal` for one answer, `equal_all` for a batch. The process starts at the first call, and again where it died. Safe to use from threads."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or len(os.sched_getaffinity(0))
        self._lock = threading.Lock()
        self._server: _Server | None = None

    def equal(
        self, right: Sequence[str], answer: str, statement: str = "", any_form: bool = False
    ) -> bool:
        """Whether the answer equals one of the right ones. Raises ValueError where there is no right answer, VerifierDied for no verdict."""
        [verdict] = self.equal_all([Case(tuple(right), answer, statement, any_form)])
        if verdict is None:
            raise VerifierDied(
                "the mathematics verifier was lost twice on one answer: is sympy installed and memory left?"
            )
        return verdict

    def equal_all(self, cases: Sequence[Case], batch_s: float = BATCH_S) -> list[bool | None]:
        """Verdicts in the order of the cases, None for no verdict. Raises ValueError for a case without a right answer."""
        deadline = time.monotonic() + batch_s + CASE_S * len(cases)
        verdicts = {case: _by_text(case) for case in cases}
        left = [case for case, verdict in verdicts.items() if verdict is None]
        for _ in range(TRIES):
            asked = {case: self._ask(case, deadline) for case in left}
            found = {case: _result(answered, deadline) for case, answered in asked.items()}
            verdicts |= {
                case: {"equal": True, "different": False}.get(word) for case, word in found.items()
            }
            left = [case for case, word in found.items() if word == LOST]
        return [verdicts[case] for case in cases]

    def close(self) -> None:
        """End the process."""
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
    """The verdict where the texts alone give one."""
    right = [text for text in case.right if text.strip()]
    if not right:
        raise ValueError(
            f"right answer {list(case.right)!r} cannot be read as mathematics: mend the data"
        )
    if not case.answer.strip():
        return False
    found = [same_text(text, case.answer) for text in right]
    return True if True in found else None if None in found else False


def _result(answered: Future[str], deadline: float) -> str:
    try:
        return answered.result(max(0.0, deadline - time.monotonic()) + GRACE_S)
    except TimeoutError:
        return "late"


class _Server:
    """The process, and a thread that hands its answers on. The process ends with its owner."""

    def __init__(self, workers: int) -> None:
        script, root = Path(__file__).with_name("math_worker.py"), Path(__file__).parents[1]
        self.owner, self.dead = os.getpid(), False
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self._asked: dict[int, Future[str]] = {}
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(script), str(root), str(self.owner), str(workers)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        threading.Thread(target=self._listen, name="math-verifier", daemon=True).start()

    def ask(self, case: Case, deadline: float) -> Future[str]:
        answered: Future[str] = Future()
        with self._lock:
            if self.dead:
                answered.set_result(LOST)
                return answered
            number = id(answered)
            self._asked[number] = answered
        line = json.dumps({"id": number, "deadline": deadline} | asdict(case)) + "\n"
        assert self._process.stdin
        with (
            self._writing,
            suppress(OSError, ValueError),
        ):  # a broken or closed pipe: the listener reports the loss
            self._process.stdin.write(line)
            self._process.stdin.flush()
        return answered

    def close(self) -> None:
        self._process.kill()

    def _listen(self) -> None:
        """Hand on every answer until the process has ended; then whatever was asked is lost."""
        assert self._process.stdin and self._process.stdout
        for line in self._process.stdout:
            number, verdict = line.split()
            self._asked.pop(int(number)).set_result(verdict)
        with self._lock:
            self.dead = True
        self._process.kill()
        self._process.wait()
        with self._writing, suppress(OSError):
            self._process.stdin.close()
        self._process.stdout.close()
        for answered in self._asked.values():
            answered.set_result(LOST)
