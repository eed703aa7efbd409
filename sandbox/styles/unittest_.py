"""Style `unittest`: test cases that run in the program's own process. Their trust is `shared`."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from sandbox.styles.style import SOURCE, Style
from sandbox.verdict import Verdict
from sandbox.wire import NotPlain, frame, parse
from sandbox.worker.attempt import Attempt
from sandbox.worker.messages import Result, not_loaded, row
from sandbox.worker.watch import Stop, Watch

MAX_METHODS = 1_000  # of a test; more are not read


@dataclass(frozen=True)
class UnittestTest:
    """Python source with `unittest.TestCase` classes.

    They run in the program's own process, because they patch it. A program can therefore forge
    their result: the trust level is "shared". Each method has its own result in the report.
    """

    source: str


class UnittestAttempt(Attempt):
    """Runs each source in a process of its own: one row per method."""

    def run(self) -> list[Result]:
        self.shared = True
        for test in self.tests:
            if why := unusable(test["source"]):
                self.unusable = True
                return [[Verdict.INFRA, why, 0.0]]
        methods = [methods_of(test["source"]) for test in self.tests]
        self.processes.runs = sum(methods)
        results: list[Result] = []
        limits = self.processes.limits
        for at, (test, count) in enumerate(zip(self.tests, methods, strict=True)):
            request = self.processes.header()
            request += frame(test["source"].encode("utf-8", "surrogatepass"))
            with self.processes.started(
                "unittest", request, count, limits=limits, methods=MAX_METHODS
            ) as watch:
                stopped = self._methods(watch, count, results)
                limits = watch.remaining_limits()
            if stopped:
                self.total = max(len(results), len(self.tests))
                break
            self.total = len(results) + len(self.tests) - at - 1
        self.names += [""] * (self.total - len(self.names))
        return results

    def _methods(self, watch: Watch, clocks: int, results: list[Result]) -> bool:
        """Add a row for each method that the program's process reports; return whether it had to be
        stopped. The first `clocks` methods have time limits of their own.
        """
        before = len(results)
        message = watch.next()
        if isinstance(message, Stop) or message[:1] != b"L":
            self._add(results, "", row(*not_loaded(message), watch))
            return True
        while True:
            message = watch.next()
            if message == b"R":
                if len(results) == before:
                    self._add(results, "", row(Verdict.WA, "no test method ran", watch))
                return False
            if isinstance(message, Stop):
                self._add(results, "", row(message.verdict, message.detail, watch))
                return True
            name, verdict, detail = _method(message)
            self._add(results, name, row(verdict, detail, watch))
            if len(results) - before < clocks:
                watch.begin()

    def _add(self, results: list[Result], name: str, result: Result) -> None:
        results.append(result)
        self.names.append(name)


def methods_of(source: str) -> int:
    """Return how many test methods have time limits of their own, at least one."""
    return max(1, source.count("def test"))


def unusable(source: str) -> str:
    """Return why unittests cannot be used, or no text. Decided before the program runs."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"a test cannot be used: {type(error).__name__}: {error}"[:300]
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = any(isinstance(node, functions) and node.name.startswith("test") for node in nodes)
    return "" if found else "a test cannot be used: no class in it has a test method"


def _method(message: bytes) -> tuple[str, Verdict, str]:
    """Return name, verdict and detail of a reported method. The program may have written it."""
    try:
        fields = parse(message[1:]) if message[:1] == b"M" else None
    except NotPlain:
        fields = None
    if (
        type(fields) is not list
        or [type(field) for field in fields] != [str, str, str]
        or fields[1] not in ("AC", "WA", "RE", "MLE")
    ):
        return "", Verdict.RE, "broken message"
    name, verdict, detail = fields
    return name[:300], Verdict(verdict), detail[:300]


STYLE = Style(
    "unittest",
    UnittestTest,
    SOURCE,
    UnittestAttempt,
    show=lambda test: str(test.source),
    shared=True,
    preload=("unittest", "unittest.mock"),
    clocks=lambda test: methods_of(test.source),
    many_rows=True,
)
