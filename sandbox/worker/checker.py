"""Decides answers with the problem's own comparison, in a judge's process, which runs once all
answers have arrived.
"""

from __future__ import annotations

from sandbox.verdict import Verdict
from sandbox.wire import frame
from sandbox.worker.attempt_processes import AttemptProcesses
from sandbox.worker.messages import Result, of_judge, row
from sandbox.worker.watch import Stop


class Checker:
    """The answers of one job, and the decision about them."""

    def __init__(self, processes: AttemptProcesses, kind: bytes) -> None:
        """kind: `call`, where answers are encoded values, or `stdio`, where they are texts."""
        self.processes, self.kind = processes, kind
        self.unusable = False
        self._answers: dict[int, tuple[bytes, bytes, bytes]] = {}  # input, answer, expected value
        self._bytes = 0  # size of these answers

    def store(self, at: int, request: bytes, got: bytes, want: bytes) -> tuple[Verdict, str]:
        """Store an answer until all have arrived. Together they may be as large as the program's
        memory.
        """
        memory_mb = self.processes.limits.memory_mb
        self._bytes += len(got)
        if self._bytes > memory_mb * 2**20:
            return Verdict.OLE, f"more than {memory_mb} MB of answers"
        self._answers[at] = (request, got, want)
        return Verdict.AC, ""

    def decide(self, results: list[Result]) -> list[Result]:
        """Return the results with the checker's decision on each answer. The checker's time counts
        as the program's, because the answer may be what makes it slow.
        """
        if not self._answers:
            return results
        header = {"do": "check", "checker": self.processes.job["checker"]}
        positions = list(self._answers)
        # Each answer is freed once it is written.
        rows = (frame(part) for at in positions for part in (self.kind, *self._answers.pop(at)))
        with self.processes.judge_alone(header, rows, len(positions)) as watch:
            for number, at in enumerate(positions):
                message = watch.next()
                if number == 0 and isinstance(message, bytes) and message[:1] == b"B":
                    self.unusable = True
                    return [row(Verdict.INFRA, message[1:].decode("utf-8", "replace"), watch)]
                results[at][:2] = of_judge(message, number, watch)[:2]
                if isinstance(message, Stop):
                    return results[: at + 1]
                watch.begin()
        return results
