"""Style `assert`: Python source with `check(candidate)`, which runs apart from the program."""

from __future__ import annotations

from dataclasses import dataclass

from sandbox.styles.style import SOURCE, Style
from sandbox.verdict import Verdict
from sandbox.wire import frame
from sandbox.worker.attempt import Attempt
from sandbox.worker.literal import Claim, claims
from sandbox.worker.messages import Result, not_loaded, of_judge, of_tests, row
from sandbox.worker.slot import Broken
from sandbox.worker.watch import Stop


@dataclass(frozen=True)
class AssertTest:
    """Python source that defines `check(candidate)`. It runs in a judge process, never in the
    program's process.
    """

    source: str


class AssertAttempt(Attempt):
    """Decides tests as calls where each assertion compares a call with a literal; otherwise a judge
    process runs them.
    """

    def run(self) -> list[Result]:
        claims_of_tests = [claims(test["source"], self.job["entry"]) for test in self.tests]
        known = [test for test in claims_of_tests if test is not None]
        decided = self._claimed(known) if len(known) == len(claims_of_tests) else None
        return self._run_by_judge() if decided is None else decided

    def _claimed(self, tests: list[tuple[Claim, ...]]) -> list[Result] | None:
        """Return None where only a judge can tell; nothing has been decided then."""
        request = self.processes.header() + b"".join(
            frame(claim.call.encode()) for test in tests for claim in test
        )
        answers = sum(map(len, tests))
        with self.processes.started("call", request, len(tests), answers=answers) as watch:
            loaded = watch.next()
            if isinstance(loaded, Stop) or loaded[:1] != b"L":
                return [row(*not_loaded(loaded), watch)]
            return of_tests(watch, tests)

    def _run_by_judge(self) -> list[Result]:
        results: list[Result] = []
        with self.processes.judged() as watch:
            loaded = watch.next()
            if loaded == b"U":
                raise Broken("the program's process was not set up")
            if isinstance(loaded, bytes) and loaded[:1] == b"B":
                self.unusable = True
                return [row(Verdict.INFRA, loaded[1:].decode("utf-8", "replace"), watch)]
            if isinstance(loaded, Stop) or loaded[:1] != b"L":
                return [row(*not_loaded(loaded), watch)]
            for at in range(len(self.tests)):
                message = watch.next()
                verdict, detail, shared = of_judge(message, at, watch)
                self.shared |= shared
                results.append(row(verdict, detail, watch))
                if isinstance(message, Stop) or message[:1] != b"V":
                    break
                watch.begin()
        return results


STYLE = Style(
    "assert",
    AssertTest,
    SOURCE,
    AssertAttempt,
    show=lambda test: str(test.source),
    options=("in_place",),
)
