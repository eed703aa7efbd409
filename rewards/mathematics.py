"""Whether two mathematical expressions are the same. In: right answers and a final answer, LaTeX or plain. Out: yes or no.

Decided by math-verify (https://github.com/huggingface/Math-Verify) in a process of its own that forks for each answer: `9^{9^{9^9}}` costs its fork,
and nothing else. An answer that exhausts it is wrong; only the loss of the process itself is no verdict. No answer is ever evaluated as Python.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

LONGEST = 500  # characters of a final answer
_SAYS = re.compile(r"=|≈|≡|≅|≃|∼|\\(?:approx|equiv|sim|simeq|cong|doteq|asymp|to|rightarrow|Rightarrow|implies|iff|mapsto|mid)(?![a-zA-Z])")
_NAME = re.compile(r"[\\a-zA-Z_{}()' ]*")


class VerifierDied(RuntimeError):
    """The verifier's process ended by itself: a failure of ours."""


def one_statement(answer: str) -> bool:
    """Not a chain of equations to choose from: at most one sign that equates or leads on, and left of it a name."""
    signs = list(_SAYS.finditer(answer))
    return not signs or (len(signs) == 1 and _NAME.fullmatch(answer[: signs[0].start()]) is not None)


class Verifier:
    """`equal(right, answer)`; the process starts at the first call, and again where it died. Safe to use from threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def equal(self, right: Sequence[str], answer: str) -> bool:
        """Whether the answer equals one of the right ones.

        Raises ValueError for a right answer that is no mathematics, VerifierDied after two losses.
        """
        if not answer.strip() or len(answer) > LONGEST or not one_statement(answer):
            return False
        line = json.dumps({"right": list(right), "answer": answer}) + "\n"
        with self._lock:
            told = self._ask(line) or self._ask(line)
        if not told:
            raise VerifierDied("the mathematics verifier ended twice on one answer: is math-verify installed and memory left?")
        if told == "unreadable":
            raise ValueError(f"right answer {list(right)!r} cannot be read as mathematics: mend the data")
        return told == "equal"

    def close(self) -> None:
        process, self._process = self._process, None
        if process:
            process.kill()
            for pipe in (process.stdin, process.stdout):
                if pipe:
                    with suppress(BrokenPipeError):
                        pipe.close()
            process.wait()

    def _ask(self, line: str) -> str:
        """One line answered, or "" where the process is lost."""
        if self._process is None:
            command = [sys.executable, "-I", str(Path(__file__).with_name("math_worker.py"))]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self._process.stdin and self._process.stdout
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
            told = self._process.stdout.readline().strip()
        except BrokenPipeError:
            told = ""
        if not told:
            self.close()
        return told
