"""A program as its process gets it: in Python as text, in another language compiled first."""

from __future__ import annotations

import os
import re
from shutil import which

from sandbox.languages import LANGUAGES
from sandbox.languages.language import COMPILING
from sandbox.verdict import Verdict
from sandbox.wire import frame
from sandbox.worker.attempt_processes import AttemptProcesses
from sandbox.worker.messages import Result, exception, row
from sandbox.worker.slot import ENVIRONMENT, seal
from sandbox.worker.watch import Stop, Watch

SHOWN = 300  # characters of what a compiler or a failing program says


class Executable:
    """The program of one job. Close it."""

    def __init__(self, processes: AttemptProcesses) -> None:
        self.processes = processes
        self.language = LANGUAGES.get(processes.job["language"])
        self.request = processes.header()
        self._compiled: int | None = None
        if self.language and not self.language.run:
            self._compiled = os.memfd_create("program", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)

    def handles(self) -> list[int]:
        """Return descriptors of the compiled program for one process; empty without one."""
        return [] if self._compiled is None else [os.dup(self._compiled)]

    def compile(self) -> Result | None:
        """Compile the program. Returns the result of one that does not compile, else None. What the
        compiler used and did is not counted.
        """
        if not (language := self.language):
            return None
        processes, source = self.processes, self.processes.job["source"]
        processes.slot.limit(COMPILING)
        request = _request(language.file, source, *language.compile)
        with processes.started(
            "compile", request, 1, limits=COMPILING, more=self.handles()
        ) as watch:
            status = watch.exit()
            why = status.detail if isinstance(status, Stop) else _text(watch.errors)[:SHOWN]
            fault = row(Verdict.CE, f"the compiler: {why}", watch)
        processes.begin()
        if denied := processes.slot.denied:
            denied.take()
            name = language.run[0] if language.run else ""
            program = which(name, path=ENVIRONMENT["PATH"]) or self._compiled
            if program is not None:
                denied.call_counter.expect(program)
        if self._compiled is not None:
            seal(self._compiled)
        command = [word.format(**vars(processes.limits)) for word in language.run]
        self.request = _request(*(language.file, source, *command) if command else ("", ""))
        return None if status == 0 else fault

    def fault(self, watch: Watch) -> tuple[Verdict, str] | None:
        """Wait for the program's end; return the verdict of one that failed, None of one that ended
        with exit status 0.
        """
        status = watch.exit()
        if isinstance(status, Stop):
            return status.verdict, status.detail
        messages = watch.rest()
        if messages and messages[0][:1] == b"C":
            return Verdict.CE, messages[0][1:300].decode("utf-8", "replace")
        if status == 0:
            return None
        if messages and messages[0][:1] == b"X":
            return exception(messages[0][1:])
        stop, said = watch.ending(status), watch.errors
        if not self.language:
            return stop.verdict, stop.detail
        if any(words in said for words in self.language.out_of_memory):
            return Verdict.MLE, "an allocation failed"
        return stop.verdict, f"{stop.detail}: {_text(said)[-SHOWN:]}".rstrip(": ")

    def close(self) -> None:
        if self._compiled is not None:
            os.close(self._compiled)


def _request(*texts: str) -> bytes:
    return b"".join(frame(text.encode("utf-8", "surrogatepass")) for text in texts)


def _text(said: bytearray) -> str:
    """Return what was written to stderr without node's stack."""
    return re.sub(r"\n +at [^\n]*", "", said.decode("utf-8", "replace")).strip()
