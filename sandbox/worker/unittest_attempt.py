"""Decides unittests: each method in processes of its own, by a judge and by decoys.

A job may want its methods to pass in one process too, as unittest runs them (`together`).
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import chain, zip_longest
from typing import Any

from sandbox.child.answers import INEXACT
from sandbox.protocol import Verdict
from sandbox.wire import MAX_FRAME, frame, parse
from sandbox.worker.attempt_processes import AttemptProcesses
from sandbox.worker.forgery_check import FORGED, believed, beside_others
from sandbox.worker.messages import Result, exception, not_loaded, row
from sandbox.worker.watch import Stop, Watch

MAX_ALTERED = 32
MAX_ANSWERS = 10_000  # answers to the questions of one unittest method
MAX_TOGETHER = 8  # decoys of methods that pass only after others


class UnittestAttempt(AttemptProcesses):
    """One job with unittests in the program's slot."""

    def _unittest(self) -> list[Result]:
        """Decide unittests, which share the program's interpreter: one row per method. A pass is
        accepted only if every decoy fails (sandbox/decoys/decoys.py).
        """
        methods: list[dict[str, Any]] = []
        for test in self.tests:
            variants = self._altered(self._header_of_methods(test["source"]))
            if isinstance(variants, str):
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
        if self.job["together"] and len(self.tests) == 1:
            results = self._together(methods, results)
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

    def _together(self, methods: list[dict[str, Any]], results: list[Result]) -> list[Result]:
        """Return the results where all methods of a test run in one process, in unittest's order.

        What passes alone must pass there too. What fails alone may pass there, if its decoys among
        the other methods fail. If the first method fails, it does so in both cases.
        """
        failed = [at for at, result in enumerate(results) if result[0] != Verdict.AC]
        first = min(
            self.names, key=lambda name: (name.split(".")[0] != _class(self.names[0]), name)
        )
        if any(
            results[at][0] not in (Verdict.WA, Verdict.RE) or self.names[at] == first
            for at in failed
        ):
            return results
        header = {
            "do": "alter together", "test": self.tests[0]["source"], "names": self.names,
            "hiding": [method["name"] for method in methods if method["hides"]],
        }  # fmt: skip
        if isinstance(variants := self._altered(header), str):
            return [[Verdict.INFRA, variants, 0.0]]

        def run(text: str) -> Result:
            return self._shared(text, methods=len(methods))

        text = variants[0]["text"]
        if not failed:
            verdict, why, seconds = run(text)
            if verdict != Verdict.AC:
                at = next((at for at, name in enumerate(self.names) if _names(why, name)), -1)
                results[at] = [
                    verdict,
                    f"it passes alone, and not after others: {why}"[:300],
                    seconds,
                ]
            return results
        decoys = [variants[at]["decoys"] for at in failed]
        if all(decoys):
            # the best of each first
            best = [decoy for decoy in chain(*zip_longest(*decoys)) if decoy]
            result = believed(run, text, best[: max(MAX_TOGETHER, len(failed))])
            if result[1] == FORGED:
                return [result for _ in results]
            if result[0] == Verdict.AC:
                return [row if row[0] == Verdict.AC else result for row in results]
        return results

    def _header_of_methods(self, source: str) -> dict[str, Any]:
        inexact = bool(self.job["package_folder"])
        return {"do": "alter", "test": source, "entry": self.job["entry"], "inexact": inexact}

    def _altered(self, header: dict[str, Any]) -> list[dict[str, Any]] | str:
        """Return the variants of each method of a test (decoys/methods.py), or the reason why the
        test cannot be used. header: the request to the judge.
        """
        key = json.dumps(header)
        if key not in self.altered:
            with self._judge_alone(header, (), 1) as watch:
                message = watch.next()
            if isinstance(message, Stop) or message[:1] != b"V":
                self.unusable = True
                return (
                    message.detail
                    if isinstance(message, Stop)
                    else message[1:].decode("utf-8", "replace")
                )
            if len(self.altered) >= MAX_ALTERED:
                del self.altered[next(iter(self.altered))]
            self.altered[key] = parse(message[1:])  # type: ignore[assignment]
        return self.altered[key]

    def _unusable(self, why: str, watch: Watch) -> Result:
        self.unusable = True
        return row(Verdict.INFRA, why, watch)

    def _shared(self, test: str, answers: list[bytes] | None = None, methods: int = 1) -> Result:
        """Run one such source once, which has this number of methods. answers: collects the answers
        to its questions.
        """
        self.runs += methods
        limits = replace(
            self.limits,
            wall_s=methods * self.limits.wall_s,
            cpu_s=methods * self.limits.cpu_s,
            output_kb=methods * self.limits.output_kb,
        )
        request = self._header() + frame(test.encode("utf-8", "surrogatepass"))
        with self._started(
            "unittest",
            request,
            1,
            limits=limits,
            questions=0 if answers is None else MAX_ANSWERS,
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


def _class(name: str) -> str:
    return name.partition(".")[0]


def _names(why: str, method: str) -> bool:
    """Whether a message of a failed test is about this method, written as Class.method."""
    return why.startswith(f"{method.rpartition('.')[2]} (")
