"""Runs one job: starts, observes and ends its programs, and decides each test, here or in a judge
process.

Expected values reach this process and no further. The program's process is forked from the zygote,
which has never seen them.
"""

from __future__ import annotations

from typing import Any

from sandbox.child.answers import INEXACT
from sandbox.protocol import Verdict
from sandbox.wire import MAX_FRAME, NotPlain, frame, parse
from sandbox.worker.attempt_processes import JUDGE_LIMITS, AttemptProcesses
from sandbox.worker.compare import same_output, same_text
from sandbox.worker.forgery_check import FORGED, believed, beside_others
from sandbox.worker.literal import Claim, claims
from sandbox.worker.messages import Result, exception, not_loaded, of_tests, row
from sandbox.worker.slot import Broken
from sandbox.worker.watch import Stop, Watch

# CPU time of each program's process that the sandbox itself uses for the set-up, at most
SET_UP_CPU_S = 0.5
MOST_ALTERED = 32
MOST_ANSWERS = 10_000  # answers to the questions of one unittest method


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
        """Decide unittests, which share the program's interpreter: one row per method. A pass is
        accepted only if every decoy fails (sandbox/decoys/decoys.py).
        """
        methods: list[dict[str, Any]] = []
        for test in self.tests:
            if isinstance(variants := self._altered(test["source"]), str):
                return [[Verdict.INFRA, variants, 0.0]]
            methods += variants
        self.total, self.names = len(methods), [method["name"] for method in methods]
        results: list[Result] = []
        hidden: list[bool] = []
        for method in methods:
            result, hides = self._method(method)
            results.append(result)
            hidden.append(hides)
            if results[-1][1] == FORGED:  # then a pass of another method proves nothing either
                return [[Verdict.WA, FORGED, results[-1][2]] for _ in methods]
            if results[-1][0] in (Verdict.CE, Verdict.TLE, Verdict.MLE, Verdict.OLE):
                break
        hidden += [False] * (len(methods) - len(hidden))
        return beside_others(results, hidden)

    def _method(self, method: dict[str, Any]) -> tuple[Result, bool]:
        """Decide one method. Returns also whether the program could not see what it expects.

        A judge decides about the program's answers. Where that hides no expected value from the
        program, decoys are run too. With a package folder, answers are often no plain data:
        - A DataFrame equals nothing in the judge's process, so a refusal proves nothing. The decoys
          decide, if there are any: a program must not choose a weaker check.
        - A list equals an array there. A pass must be confirmed in the program's own process.
        """
        if method["checks"]:
            answers: list[bytes] = []
            result = self._split(method["doing"], method["checks"], answers)
            inexact = bool(self.job["package_folder"]) and any(
                mark in answer for answer in answers for mark in INEXACT
            )
            if result[0] == Verdict.AC and method["hides"]:
                return self._shared(method["text"]) if inexact else result, True
            if result[0] != Verdict.AC and not (inexact and method["decoys"]):
                return result, method["hides"]
        return believed(self._shared, method["text"], method["decoys"]), False

    def _split(self, doing: str, checks: str, answers: list[bytes]) -> Result:
        """Run both parts of a split method: the program's process executes it and answers
        questions, a judge process decides about the answers (sandbox/decoys/split.py).
        """
        result = self._shared(doing, answers)
        if result[0] != Verdict.AC:
            return result
        with self._judge_alone({"do": "decide", "checks": checks}, map(frame, answers), 1) as watch:
            return [*self._verdict_of(watch.next(), 0, watch), result[2]]

    def _altered(self, source: str) -> list[dict[str, Any]] | str:
        """Return the variants of each method of a test (decoys/methods.py), or the reason why the
        test cannot be used.
        """
        inexact = bool(self.job["package_folder"])
        key = f"{inexact} {source}"
        if key not in self.altered:
            header = {"do": "alter", "test": source, "entry": self.job["entry"], "inexact": inexact}
            with self._judge_alone(header, (), 1) as watch:
                message = watch.next()
            if isinstance(message, Stop) or message[:1] != b"V":
                self.unusable = True
                return (
                    message.detail
                    if isinstance(message, Stop)
                    else message[1:].decode("utf-8", "replace")
                )
            if len(self.altered) >= MOST_ALTERED:
                del self.altered[next(iter(self.altered))]
            self.altered[key] = parse(message[1:])  # type: ignore[assignment]
        return self.altered[key]

    def _unusable(self, why: str, watch: Watch) -> Result:
        self.unusable = True
        return row(Verdict.INFRA, why, watch)

    def _shared(self, test: str, answers: list[bytes] | None = None) -> Result:
        """Run one such source once. answers: collects the answers to its questions."""
        self.runs += 1
        request = self._header() + frame(test.encode("utf-8", "surrogatepass"))
        with self._started(
            "unittest", request, 1, questions=0 if answers is None else MOST_ANSWERS
        ) as watch:
            loaded = watch.next()
            if isinstance(loaded, Stop) or loaded[:1] != b"L":
                return row(*not_loaded(loaded), watch)
            message = watch.next()
            size = 0
            while answers is not None and not isinstance(message, Stop) and message[:1] == b"A":
                answers.append(message[1:])
                size += len(message)
                if size > MAX_FRAME:
                    return row(Verdict.OLE, "too much is told", watch)
                message = watch.next()
            if isinstance(message, Stop):
                return row(message.verdict, message.detail, watch)
            if message == b"R":
                return row(Verdict.AC, "", watch)
            return row(
                *(
                    exception(message[1:])
                    if message[:1] == b"X"
                    else (Verdict.WA, message[1:300].decode("utf-8", "replace"))
                ),
                watch,
            )

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
