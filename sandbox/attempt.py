"""One job: its programs are started, listened to and ended, and each test is decided, here or by a judge process.

Expected values come as far as this process and never further: the program's process is forked from the zygote, which has not seen them.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from sandbox.belief import FORGED, believed, beside_others
from sandbox.compare import same_output, same_text
from sandbox.in_place import sees_changes
from sandbox.literal import Claim, claims
from sandbox.messages import Result, exception, not_loaded, of_tests, row
from sandbox.protocol import Limits, Verdict
from sandbox.slot import Broken, Slot, sealed
from sandbox.watch import Stop, Watch
from sandbox.wire import MAX_FRAME, NotPlain, frame, parse

SET_UP_CPU_S = 0.5  # of each program's CPU time, at most, is ours
Altered = dict[str, list[dict[str, Any]]]
MOST_ALTERED = 32
MOST_ANSWERS = 10_000  # to the questions of a method
JUDGE_LIMITS = Limits(
    memory_mb=2048
)  # of the process that runs the tests; its time is bounded by the program's clock


class Attempt:
    """One job in the program's slot and, where a judge must run its tests, the judge's, which joins `slots` then."""

    def __init__(
        self,
        slots: list[Slot],
        job: dict[str, Any],
        limits: Limits,
        owner: int,
        judges: Callable[[dict[str, Any]], Slot],
        altered: Altered,
    ) -> None:
        """altered: what is known of decoys, by the text of the test; more is put into it here."""
        self.slots, self.job, self.limits, self.owner, self.judges = (
            slots,
            job,
            limits,
            owner,
            judges,
        )
        slot = self.slot = slots[0]
        self.altered = altered
        self.tests: list[dict[str, Any]] = job["tests"]
        self.total = len(self.tests)  # rows of the report
        self.names: list[str] = []  # of the methods that the rows are about
        self.cpu_s = 0.0
        self.runs = 0  # of unittest methods and decoys, each with the limits of a test
        self.peak_bytes = 0
        self.shared = job["style"] == "unittest"  # the program's own word went into a verdict
        self.unusable = False  # what the problem brought cannot be run
        self.answers: dict[
            int, tuple[bytes, bytes, bytes]
        ] = {}  # for the checker, by test: what was given, what came, what was expected
        self.kept_bytes = 0  # of what came for it
        self._kills = slot.cgroup.oom_kills() if slot.cgroup else 0
        slot.limit(limits)

    def ran_out_of_memory(self) -> bool:
        return self.slot.cgroup is not None and self.slot.cgroup.oom_kills() > self._kills

    def run(self) -> list[Result]:
        """A row for each test that was decided, in order; short when the program had to be stopped."""
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

    def _most_cpu_s(self) -> float:
        each = self.limits.cpu_s * max(len(self.tests), self.runs)
        return (
            each
            if self.limits.total_cpu_s is None
            else min(each, self.limits.total_cpu_s * max(1, self.runs))
        )

    def _call(self) -> list[Result]:
        """All calls are handed over at once; each result starts the next test's clock."""
        request = self._header() + b"".join(frame(test["call"].encode()) for test in self.tests)
        results: list[Result] = []
        with self._started("call", request, len(self.tests), answers=len(self.tests)) as watch:
            loaded = watch.next()
            if isinstance(loaded, Stop) or loaded[:1] != b"L":
                return [row(*not_loaded(loaded), watch)]
            for at, test in enumerate(self.tests):
                heard = watch.next()
                results.append(row(*self._decide(heard, at, test), watch))
                if isinstance(heard, Stop):
                    break
                watch.begin()
        return results

    def _decide(self, heard: bytes | Stop, at: int, test: dict[str, Any]) -> tuple[Verdict, str]:
        if isinstance(heard, Stop):
            return heard.verdict, heard.detail
        kind, body = heard[:1], heard[1:]
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
            return self._for_the_checker(at, test["call"].encode(), body, want)
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
        left = self.limits
        for at, test in enumerate(self.tests):
            given, want = (
                test[key].encode("utf-8", "surrogatepass") for key in ("stdin", "stdout")
            )
            with self._started("stdio", self._header(), 1, stdin=given, limits=left) as watch:
                results.append(row(*self._decide_output(watch, at, given, want), watch))
                left = watch.left()
            if results[-1][0] in (Verdict.CE, Verdict.TLE, Verdict.MLE, Verdict.OLE):
                break
        return results

    def _decide_output(
        self, watch: Watch, at: int, given: bytes, want: bytes
    ) -> tuple[Verdict, str]:
        status = watch.exit()
        if isinstance(status, Stop):
            return status.verdict, status.detail
        told = watch.rest()
        if told and told[0][:1] == b"C":
            return Verdict.CE, told[0][1:300].decode("utf-8", "replace")
        if status != 0:
            if told and told[0][:1] == b"X":
                return exception(told[0][1:])
            stop = watch.ending(status)
            return stop.verdict, stop.detail
        got = bytes(watch.printed)
        if self.job["checker"]:
            return self._for_the_checker(at, given, got, want)
        if same_output(got, want, self.job["tolerance"], self.job["compare"]):
            return Verdict.AC, ""
        return Verdict.WA, f"printed {got[:200].decode('utf-8', 'replace')!r}"

    def _for_the_checker(
        self, at: int, given: bytes, got: bytes, want: bytes
    ) -> tuple[Verdict, str]:
        """Keeps an answer until all have come: together they may be as large as the program."""
        self.kept_bytes += len(got)
        if self.kept_bytes > self.limits.memory_mb * 2**20:
            return Verdict.OLE, f"more than {self.limits.memory_mb} MB of answers"
        self.answers[at] = (given, got, want)
        return Verdict.AC, ""

    def _checked(self, results: list[Result]) -> list[Result]:
        """The results, with the checker's word on each answer. Its time is the program's: it may be slow because of the answer."""
        header = {"do": "check", "checker": self.job["checker"]}
        answered = list(self.answers)
        # each is let go when it has been written: what came may be as large as the program was
        rows = (
            frame(part)
            for at in answered
            for part in (self.job["style"].encode(), *self.answers.pop(at))
        )
        with self._asked(header, rows, len(answered)) as watch:
            for number, at in enumerate(answered):
                heard = watch.next()
                if number == 0 and isinstance(heard, bytes) and heard[:1] == b"B":
                    return [self._unusable(heard[1:].decode("utf-8", "replace"), watch)]
                results[at][:2] = self._verdict_of(heard, number, watch)
                if isinstance(heard, Stop):
                    return results[: at + 1]
                watch.begin()
        return results

    def _unittest(self) -> list[Result]:
        """Tests that share the program's interpreter, a row a method. A pass is believed when every decoy fails (sandbox/decoys.py)."""
        methods: list[dict[str, Any]] = []
        for test in self.tests:
            if isinstance(found := self._altered(test["source"]), str):
                return [[Verdict.INFRA, found, 0.0]]
            methods += found
        self.total, self.names = len(methods), [method["name"] for method in methods]
        results: list[Result] = []
        for method in methods:
            results.append(self._method(method))
            if results[-1][1] == FORGED:  # then it shows nothing that another method passed
                return [[Verdict.WA, FORGED, results[-1][2]] for _ in methods]
            if results[-1][0] in (Verdict.CE, Verdict.TLE, Verdict.MLE, Verdict.OLE):
                break
        return beside_others(results, [method["hides"] for method in methods])

    def _method(self, method: dict[str, Any]) -> Result:
        """One method: by what a judge makes of the program's answers, and where the judge has nothing to hide from it, by its decoys too."""
        answered = self._split(method["doing"], method["checks"]) if method["checks"] else None
        if answered and (answered[0] != Verdict.AC or method["hides"]):
            return answered
        return believed(self._shared, method["text"], method["decoys"])

    def _split(self, doing: str, checks: str) -> Result:
        """The program's process does what the method does and is asked for values; a judge's process decides about these (sandbox/split.py)."""
        told: list[bytes] = []
        result = self._shared(doing, told)
        if result[0] != Verdict.AC:
            return result
        with self._asked({"do": "decide", "checks": checks}, map(frame, told), 1) as watch:
            return [*self._verdict_of(watch.next(), 0, watch), result[2]]

    def _altered(self, source: str) -> list[dict[str, Any]] | str:
        """What is made of each method of a test (sandbox/methods.py); or why the test cannot be used."""
        if source not in self.altered:
            with self._asked(
                {"do": "alter", "test": source, "entry": self.job["entry"]}, (), 1
            ) as watch:
                heard = watch.next()
            if isinstance(heard, Stop) or heard[:1] != b"V":
                self.unusable = True
                return (
                    heard.detail
                    if isinstance(heard, Stop)
                    else heard[1:].decode("utf-8", "replace")
                )
            if len(self.altered) >= MOST_ALTERED:
                del self.altered[next(iter(self.altered))]
            self.altered[source] = parse(heard[1:])  # type: ignore[assignment]
        return self.altered[source]

    def _unusable(self, why: str, watch: Watch) -> Result:
        self.unusable = True
        return row(Verdict.INFRA, why, watch)

    def _shared(self, test: str, told: list[bytes] | None = None) -> Result:
        """One run of such a text. told: takes the answers to its questions."""
        self.runs += 1
        request = self._header() + frame(test.encode("utf-8", "surrogatepass"))
        with self._started(
            "unittest", request, 1, questions=0 if told is None else MOST_ANSWERS
        ) as watch:
            loaded = watch.next()
            if isinstance(loaded, Stop) or loaded[:1] != b"L":
                return row(*not_loaded(loaded), watch)
            heard = watch.next()
            size = 0
            while told is not None and not isinstance(heard, Stop) and heard[:1] == b"A":
                told.append(heard[1:])
                size += len(heard)
                if size > MAX_FRAME:
                    return row(Verdict.OLE, "too much is told", watch)
                heard = watch.next()
            if isinstance(heard, Stop):
                return row(heard.verdict, heard.detail, watch)
            if heard == b"R":
                return row(Verdict.AC, "", watch)
            return row(
                *(
                    exception(heard[1:])
                    if heard[:1] == b"X"
                    else (Verdict.WA, heard[1:300].decode("utf-8", "replace"))
                ),
                watch,
            )

    def _assert(self) -> list[Result]:
        read = [claims(test["source"], self.job["entry"]) for test in self.tests]
        known = [test for test in read if test is not None]
        decided = self._claimed(known) if len(known) == len(read) else None
        return self._run_by_judge() if decided is None else decided

    def _claimed(self, tests: list[tuple[Claim, ...]]) -> list[Result] | None:
        """As calls, where each assertion compares one with a literal. None where only the judge can tell: nothing has been decided then."""
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
                heard = watch.next()
                results.append(row(*self._verdict_of(heard, at, watch), watch))
                if isinstance(heard, Stop) or heard[:1] != b"V":
                    break
                watch.begin()
        return results

    def _verdict_of(self, heard: bytes | Stop, at: int, watch: Watch) -> tuple[Verdict, str]:
        """The judge's word; where it says that the program is gone, what the program died of."""
        if not isinstance(heard, Stop) and heard[:1] == b"V":
            told = parse(heard[1:])
            if (
                type(told) is list
                and len(told) == 4
                and told[0] == at
                and told[1] in ("AC", "WA", "RE", "MLE", "OLE")
            ):
                self.shared |= told[3] is True
                return Verdict(told[1]), str(told[2])
        if (
            isinstance(heard, Stop) and "judge" in watch.exits
        ):  # the program may have brought it about, so it is never our failure
            return (
                heard.verdict if heard.verdict is Verdict.TLE else Verdict.WA
            ), f"the process of the tests ended: {heard.detail}"
        stop = heard
        if not isinstance(heard, Stop):
            status = watch.exit()
            stop = status if isinstance(status, Stop) else watch.ending(status)
        assert isinstance(stop, Stop)
        return stop.verdict, stop.detail

    def _header(self) -> bytes:
        return b"".join(
            frame(text.encode("utf-8", "surrogatepass"))
            for text in (self.job["entry"] or "", self.job["source"])
        )

    @contextlib.contextmanager
    def _started(
        self,
        style: str,
        request: bytes,
        tests: int,
        stdin: bytes = b"",
        limits: Limits | None = None,
        answers: int | None = None,
        questions: int = 0,
    ) -> Iterator[Watch]:
        """A program's process that runs; nothing of it is left afterwards. Raises Broken where it cannot be set up.

        answers: how many calls it answers, where that is all that it does. questions: how many answers it may give to a unittest's questions.
        """
        results, channel = os.pipe2(os.O_CLOEXEC)
        waiting, gate = os.pipe2(os.O_CLOEXEC)
        out, out_inner = os.pipe2(os.O_CLOEXEC)
        err, err_inner = os.pipe2(os.O_CLOEXEC) if style == "stdio" else (None, out_inner)
        for written in (out_inner, err_inner):
            os.fchmod(written, 0o622)  # a program of another uid may open it again, as /dev/stdout
        nowhere = sealed(stdin) if stdin else os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        limits = limits or self.limits
        messages = (
            2 + questions + (1 if answers is None else answers)
        )  # 2: that it is set up, that it is loaded
        watch = Watch(
            self.slots,
            results,
            [out] if err is None else [out, err],
            limits,
            self.owner,
            "program",
            messages,
            gate,
        )
        watch.done_after_them = answers is not None
        self.slot.start(
            "program",
            style,
            limits,
            tests,
            [nowhere, out_inner, err_inner, sealed(request), channel, waiting],
        )
        yield from self._until_the_end(watch)

    @contextlib.contextmanager
    def _judged(self) -> Iterator[Watch]:
        """A judge's process and a program's, joined by a socket."""
        results, channel = os.pipe2(os.O_CLOEXEC)
        waiting, gate = os.pipe2(os.O_CLOEXEC)
        out, out_inner = os.pipe2(os.O_CLOEXEC)
        asks, answers = socket.socketpair()
        answers_kept = answers.dup()
        watch = Watch(
            self.slots, results, [out], self.limits, self.owner, "judge", 2 + len(self.tests), gate
        )
        watch.done_after_them = True
        # when the program has ended, the judge must hear it even if a child of the program holds the socket
        watch.on_exit["program"] = lambda: answers_kept.shutdown(socket.SHUT_RDWR)
        texts = [test["source"] for test in self.tests]
        in_place = [self.job["in_place"] or sees_changes(text, self.job["entry"]) for text in texts]
        tests = {
            "do": "assert", "entry": self.job["entry"], "prompt": self.job["prompt"], "tests": texts, "in_place": in_place,
            "output_kb": self.limits.output_kb,
        }  # fmt: skip
        judging = replace(JUDGE_LIMITS, cpu_s=self.limits.wall_s)
        nothing = [os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)]
        request = sealed(frame(json.dumps(tests).encode()))
        self.slots[1].start(
            "judge",
            "assert",
            judging,
            len(self.tests),
            [*nothing * 3, request, channel, asks.detach()],
        )
        stdin = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        program = [stdin, out_inner, out_inner, sealed(self._header()), answers.detach(), waiting]
        self.slot.start("program", "assert", self.limits, len(self.tests), program)
        with answers_kept:
            yield from self._until_the_end(watch)

    @contextlib.contextmanager
    def _asked(self, header: dict[str, Any], body: Iterable[bytes], tests: int) -> Iterator[Watch]:
        """A judge's process alone, for the text of the problem that it runs."""
        results, channel = os.pipe2(os.O_CLOEXEC)
        out, out_inner = os.pipe2(os.O_CLOEXEC)
        judging = replace(JUDGE_LIMITS, wall_s=self.limits.wall_s, cpu_s=self.limits.wall_s)
        judges = self.judges(self.job)
        judges.limit(JUDGE_LIMITS)
        watch = Watch([judges], results, [out], judging, self.owner, "judge", 1 + tests)
        request = sealed(frame(json.dumps(header).encode()), more=body)
        stdin = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        judges.start(
            "judge", "assert", judging, tests, [stdin, out_inner, out_inner, request, channel]
        )
        watch.await_set_up()
        try:
            yield watch
        finally:
            judges.end()
            judges.ended()
            watch.close()

    def _until_the_end(self, watch: Watch) -> Iterator[Watch]:
        watch.await_set_up()
        try:
            yield watch
        finally:
            watch.let_leave()
            for slot in self.slots:
                if slot.denied:
                    slot.denied.tried.settle()
                slot.end()
            used = [slot.ended() for slot in self.slots]
            self.cpu_s += used[0]
            self.peak_bytes = max(self.peak_bytes, self._peak(watch))
            watch.close()

    def _peak(self, watch: Watch) -> int:
        together = self.slot.cgroup.peak_bytes() if self.slot.cgroup else None
        return (
            max(watch.peak, self.slot.accounts.peak_bytes)
            if together is None
            else max(0, together - self.slot.base_bytes)
        )
