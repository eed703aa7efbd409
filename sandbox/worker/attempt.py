"""Runs one job: starts, observes and ends its programs, and decides each test, here or in a judge
process.

Expected values reach this process and no further. The program's process is forked from the zygote,
which has never seen them.
"""

from __future__ import annotations

import ast
from typing import Any

from sandbox.protocol import Verdict, methods_of
from sandbox.wire import NotPlain, frame, parse
from sandbox.worker.attempt_processes import JUDGE_LIMITS, AttemptProcesses
from sandbox.worker.compare import same_output, same_text
from sandbox.worker.literal import Claim, claims
from sandbox.worker.messages import Result, exception, not_loaded, of_tests, row
from sandbox.worker.slot import Broken
from sandbox.worker.watch import Stop, Watch

# CPU time of each program's process that the sandbox itself uses for the set-up, at most
SET_UP_CPU_S = 0.5
MAX_METHODS = 1_000  # of a unittest; more are not read


class Attempt(AttemptProcesses):
    """One job in the program's slot. Where a judge must run its tests, the judge's slot is added to
    `slots`.
    """

    def run(self) -> list[Result]:
        """Return one result row per decided test, in order; fewer rows than tests if the program
        had to be stopped.
        """
        style = {
            "call": self._call,
            "stdio": self._stdio,
            "assert": self._assert,
            "unittest": self._unittest,
        }[self.job["style"]]
        results = style()
        if self.answers:
            results = self._checked(results)
        if self.ran_out_of_memory() and all(result[0] != Verdict.MLE for result in results):
            results[-1] = [
                Verdict.MLE,
                "a process of the program was killed for memory",
                results[-1][2],
            ]
        elif self.cpu_s > self._most_cpu_s() + SET_UP_CPU_S and all(
            result[0] == Verdict.AC for result in results
        ):
            results[-1] = [
                Verdict.TLE,
                "the processes of the program took too much CPU together",
                results[-1][2],
            ]
        return results

    def _call(self) -> list[Result]:
        """Decide tests of style `call`. All calls are sent at once; each result starts the clock of
        the next test.
        """
        request = self._header() + b"".join(frame(test["call"].encode()) for test in self.tests)
        results: list[Result] = []
        with self._started("call", request, len(self.tests), answers=len(self.tests)) as watch:
            loaded = watch.next()
            if isinstance(loaded, Stop) or loaded[:1] != b"L":
                return [row(*not_loaded(loaded), watch)]
            for at, test in enumerate(self.tests):
                message = watch.next()
                results.append(row(*self._decide(message, at, test), watch))
                if isinstance(message, Stop):
                    break
                watch.begin()
        return results

    def _decide(self, message: bytes | Stop, at: int, test: dict[str, Any]) -> tuple[Verdict, str]:
        if isinstance(message, Stop):
            return message.verdict, message.detail
        kind, body = message[:1], message[1:]
        if kind == b"X":
            return exception(body)
        if kind == b"N":
            return (
                Verdict.WA,
                f"the result is not plain data: {body[:200].decode('utf-8', 'replace')}",
            )
        if kind not in (b"R", b"T"):
            return Verdict.RE, "broken message"
        want = test["want"].encode()
        if self.job["checker"]:
            return self._store_for_checker(at, test["call"].encode(), body, want)
        try:
            right = same_text(body, want, self.job["tolerance"], self.job["compare"])
        except NotPlain as error:
            return Verdict.RE, str(error)
        except RecursionError:
            return Verdict.WA, "nested deeper than what was expected"
        return (
            (Verdict.AC, "")
            if right
            else (Verdict.WA, f"got {body[:200].decode('utf-8', 'replace')}")
        )

    def _stdio(self) -> list[Result]:
        results: list[Result] = []
        limits = self.limits
        for at, test in enumerate(self.tests):
            stdin, want = (
                test[key].encode("utf-8", "surrogatepass") for key in ("stdin", "stdout")
            )
            with self._started("stdio", self._header(), 1, stdin=stdin, limits=limits) as watch:
                results.append(row(*self._decide_output(watch, at, stdin, want), watch))
                limits = watch.remaining_limits()
            if results[-1][0] in (Verdict.CE, Verdict.TLE, Verdict.MLE, Verdict.OLE):
                break
        return results

    def _decide_output(
        self, watch: Watch, at: int, stdin: bytes, want: bytes
    ) -> tuple[Verdict, str]:
        status = watch.exit()
        if isinstance(status, Stop):
            return status.verdict, status.detail
        messages = watch.rest()
        if messages and messages[0][:1] == b"C":
            return Verdict.CE, messages[0][1:300].decode("utf-8", "replace")
        if status != 0:
            if messages and messages[0][:1] == b"X":
                return exception(messages[0][1:])
            stop = watch.ending(status)
            return stop.verdict, stop.detail
        got = bytes(watch.printed)
        if self.job["checker"]:
            return self._store_for_checker(at, stdin, got, want)
        if same_output(got, want, self.job["tolerance"], self.job["compare"]):
            return Verdict.AC, ""
        return Verdict.WA, f"printed {got[:200].decode('utf-8', 'replace')!r}"

    def _store_for_checker(
        self, at: int, request: bytes, got: bytes, want: bytes
    ) -> tuple[Verdict, str]:
        """Store an answer for the checker until all have arrived. Together they may be as large as
        the program's memory.
        """
        self.answer_bytes += len(got)
        if self.answer_bytes > self.limits.memory_mb * 2**20:
            return Verdict.OLE, f"more than {self.limits.memory_mb} MB of answers"
        self.answers[at] = (request, got, want)
        return Verdict.AC, ""

    def _checked(self, results: list[Result]) -> list[Result]:
        """Return the results with the checker's decision on each answer. The checker's time counts
        as the program's, because the answer may be what makes it slow.
        """
        header = {"do": "check", "checker": self.job["checker"]}
        positions = list(self.answers)
        # Each answer is freed once it is written: together they may be as large as the program's
        # memory.
        rows = (
            frame(part)
            for at in positions
            for part in (self.job["style"].encode(), *self.answers.pop(at))
        )
        with self._judge_alone(header, rows, len(positions)) as watch:
            for number, at in enumerate(positions):
                message = watch.next()
                if number == 0 and isinstance(message, bytes) and message[:1] == b"B":
                    return [self._unusable(message[1:].decode("utf-8", "replace"), watch)]
                results[at][:2] = self._verdict_of(message, number, watch)
                if isinstance(message, Stop):
                    return results[: at + 1]
                watch.begin()
        return results

    def _unittest(self) -> list[Result]:
        """Run unittests in the program's process, a process for each source: one row per method."""
        for test in self.tests:
            if why := unusable(test["source"]):
                self.unusable = True
                return [[Verdict.INFRA, why, 0.0]]
        methods = [methods_of(test["source"]) for test in self.tests]
        self.runs = sum(methods)
        results: list[Result] = []
        limits, stopped = self.limits, False
        for at, (test, count) in enumerate(zip(self.tests, methods, strict=True)):
            request = self._header() + frame(test["source"].encode("utf-8", "surrogatepass"))
            with self._started(
                "unittest", request, count, limits=limits, methods=MAX_METHODS
            ) as watch:
                stopped = self._methods(watch, count, results)
                limits = watch.remaining_limits()
            if stopped:
                break
            self.total = len(results) + len(self.tests) - at - 1
        if stopped:
            self.total = max(len(results), len(self.tests))
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

    def _unusable(self, why: str, watch: Watch) -> Result:
        self.unusable = True
        return row(Verdict.INFRA, why, watch)

    def _verdict_of(self, message: bytes | Stop, at: int, watch: Watch) -> tuple[Verdict, str]:
        """Return the judge's verdict; where the judge reports that the program is gone, return what
        ended the program.
        """
        if not isinstance(message, Stop) and message[:1] == b"V":
            fields = parse(message[1:])
            if (
                type(fields) is list
                and len(fields) == 4
                and fields[0] == at
                and fields[1] in ("AC", "WA", "RE", "MLE", "OLE")
            ):
                self.shared |= fields[3] is True
                return Verdict(fields[1]), str(fields[2])
        # The program may have caused the end of the judge, so it is never INFRA.
        if isinstance(message, Stop) and "judge" in watch.exits:
            return (
                message.verdict if message.verdict is Verdict.TLE else Verdict.WA
            ), f"the process of the tests ended: {message.detail}"
        stop = message
        if not isinstance(message, Stop):
            status = watch.exit()
            stop = status if isinstance(status, Stop) else watch.ending(status)
        assert isinstance(stop, Stop)
        return stop.verdict, stop.detail

    def _assert(self) -> list[Result]:
        claims_of_tests = [claims(test["source"], self.job["entry"]) for test in self.tests]
        known = [test for test in claims_of_tests if test is not None]
        decided = self._claimed(known) if len(known) == len(claims_of_tests) else None
        return self._run_by_judge() if decided is None else decided

    def _claimed(self, tests: list[tuple[Claim, ...]]) -> list[Result] | None:
        """Decide `assert` tests as calls, where each assertion compares a call with a literal.
        Returns None where only a judge can tell; nothing has been decided then.
        """
        request = self._header() + b"".join(
            frame(claim.call.encode()) for test in tests for claim in test
        )
        with self._started("call", request, len(tests), answers=sum(map(len, tests))) as watch:
            loaded = watch.next()
            if isinstance(loaded, Stop) or loaded[:1] != b"L":
                return [row(*not_loaded(loaded), watch)]
            return of_tests(watch, tests)

    def _run_by_judge(self) -> list[Result]:
        judges = self.judges(self.job)
        judges.limit(JUDGE_LIMITS)
        self.slots.append(judges)
        self.cpu_s = 0.0
        results: list[Result] = []
        with self._judged() as watch:
            loaded = watch.next()
            if loaded == b"U":
                raise Broken("the program's process was not set up")
            if isinstance(loaded, bytes) and loaded[:1] == b"B":
                return [self._unusable(loaded[1:].decode("utf-8", "replace"), watch)]
            if isinstance(loaded, Stop) or loaded[:1] != b"L":
                return [row(*not_loaded(loaded), watch)]
            for at in range(len(self.tests)):
                message = watch.next()
                results.append(row(*self._verdict_of(message, at, watch), watch))
                if isinstance(message, Stop) or message[:1] != b"V":
                    break
                watch.begin()
        return results


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
