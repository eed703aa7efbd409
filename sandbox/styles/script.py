"""Style `script`: source that runs after the program, in the program's language and process.

The exit status decides, so a program that ends early with 0 passes: the trust is `shared`.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from sandbox.reading import Key, is_text
from sandbox.styles.style import Style
from sandbox.verdict import Verdict
from sandbox.worker.attempt import Attempt
from sandbox.worker.executable import Executable
from sandbox.worker.messages import Result, row


@dataclass(frozen=True)
class ScriptTest:
    """Source that is appended to the program. The test passes if both end with exit status 0.

    A program can forge that: the trust level is "shared". A compiler's message may quote the test.
    """

    source: str


class ScriptAttempt(Attempt):
    """Compiles and runs the program once with each test."""

    def run(self) -> list[Result]:
        self.shared = True
        results: list[Result] = []
        source, used_s = self.job["source"], 0.0
        for test in self.tests:
            self.processes.job = self.job | {"source": f"{source}\n{test['source']}"}
            with closing(Executable(self.processes)) as executable:
                fault = executable.compile()
                self.processes.cpu_s += used_s  # which `compile` has reset
                results.append(fault or self._result(executable))
            used_s = self.processes.cpu_s
            if results[-1][0] in (Verdict.CE, Verdict.TLE, Verdict.MLE, Verdict.OLE):
                break
        return results

    def _result(self, executable: Executable) -> Result:
        more = executable.handles()
        with self.processes.started("stdio", executable.request, 1, more=more) as watch:
            verdict, detail = executable.fault(watch) or (Verdict.AC, "")
            if verdict is Verdict.RE and any(words in watch.errors for words in FAILED):
                verdict, detail = Verdict.WA, "an assertion failed"
            if verdict is not Verdict.CE:  # what follows may quote the test
                detail = detail.partition(":")[0]
            return row(verdict, detail, watch)


# What a failed assertion of node's `assert` and of C's writes to stderr.
FAILED = (b"AssertionError", b"Assertion `")
STYLE = Style(
    "script",
    ScriptTest,
    {"source": Key("source in the program's language, as text", is_text, required=True)},
    ScriptAttempt,
    show=lambda test: str(test.source),
    example='{"source": "if (f(1) !== 2) process.exit(1)"}',
    options=("language",),
    shared=True,
)
