"""Style `stdio`: the program is a script that reads standard input; each test runs it once."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from sandbox.reading import Key, is_text
from sandbox.styles.style import Style
from sandbox.verdict import Verdict
from sandbox.worker.attempt import Attempt
from sandbox.worker.checker import Checker
from sandbox.worker.compare import same_output
from sandbox.worker.executable import Executable
from sandbox.worker.messages import Result, row
from sandbox.worker.watch import Watch


@dataclass(frozen=True)
class StdioTest:
    """The program reads `stdin` and must print `stdout`; white space at the ends of lines is
    ignored.
    """

    stdin: str
    stdout: str


class StdioAttempt(Attempt):
    """Runs the script once for each test."""

    def run(self) -> list[Result]:
        self.checker = Checker(self.processes, b"stdio")
        with closing(Executable(self.processes)) as executable:
            fault = executable.compile()
            results = [fault] if fault else self._results(executable)
        results = self.checker.decide(results)
        self.unusable = self.checker.unusable
        return results

    def _results(self, executable: Executable) -> list[Result]:
        results: list[Result] = []
        limits = self.processes.limits
        for at, test in enumerate(self.tests):
            stdin, want = (
                test[key].encode("utf-8", "surrogatepass") for key in ("stdin", "stdout")
            )
            request, more = executable.request, executable.handles()
            with self.processes.started(
                "stdio", request, 1, stdin=stdin, limits=limits, more=more
            ) as watch:
                verdict, detail = self._decide(watch, at, stdin, want, executable)
                if (most := self.job["output_bytes"]) and watch.printed:
                    detail = _cut(bytes(watch.printed), most)
                results.append(row(verdict, detail, watch))
                limits = watch.remaining_limits()
            if results[-1][0] in (Verdict.CE, Verdict.TLE, Verdict.MLE, Verdict.OLE):
                break
        return results

    def _decide(
        self, watch: Watch, at: int, stdin: bytes, want: bytes, executable: Executable
    ) -> tuple[Verdict, str]:
        if fault := executable.fault(watch):
            return fault
        got = bytes(watch.printed)
        if self.job["checker"]:
            return self.checker.store(at, stdin, got, want)
        if same_output(got, want, self.job["tolerance"], self.job["compare"]):
            return Verdict.AC, ""
        return Verdict.WA, f"printed {got[:200].decode('utf-8', 'replace')!r}"


def _cut(printed: bytes, most: int) -> str:
    """Return the beginning and the end of an output that is longer than `most` bytes."""
    if len(printed) > most:
        printed = printed[: most // 2] + "\n…\n".encode() + printed[-(most // 2) :]
    return printed.decode("utf-8", "replace")


STYLE = Style(
    "stdio",
    StdioTest,
    {
        "stdin": Key("text", is_text, required=True),
        "stdout": Key("text", is_text, required=True),
    },
    StdioAttempt,
    show=lambda test: str(test.stdout),
    text=lambda test, name, compare, parse: f"Input:\n{test['stdin']}\nOutput:\n{test['stdout']}",
    inputs=lambda test, parse: [{"stdin": test["stdin"]}],
    expecting=lambda test_input, output: test_input | {"stdout": output},
    example='{"stdin": "1", "stdout": "2"}',
    compares=("exact", "tokens", "loose"),
    options=("checker", "tolerance", "language"),
    has_entry_point=False,
)
