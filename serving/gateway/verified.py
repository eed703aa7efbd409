"""Verified answers: several candidates are run against the request's tests, and the best returned.

In: a request with tests. Out: the first candidate that passes all of them, else the one that passes
most, with its verdict. The first candidate is the answer that the request would get without tests;
the others are sampled. Programs run in the sandbox; tests are data, never code.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from threading import Lock

from problems.encoding import decode
from rewards.extraction import extract_code
from sandbox.config import SandboxConfig
from sandbox.protocol import Job, Limits, Report, Verdict
from sandbox.sandbox import Sandbox, run_all
from serving.completion import EngineReply, gather
from serving.gateway.refusals import Refused
from serving.gateway.service import AdmittedRequest, Service
from serving.openai import Tests

TEMPERATURE = 0.8  # of the further candidates, where the request's own is lower


@dataclass(frozen=True)
class Verified:
    """The answer. report: None if the deadline passed before any verdict. first: whether the first
    candidate passed; None if it was not judged. tried: candidates that were judged. tokens: of all
    of them.
    """

    reply: EngineReply
    report: Report | None
    first: bool | None
    tried: int
    tokens: int = 0

    @property
    def measured(self) -> bool:
        return self.report is not None and self.report.verdict is not Verdict.INFRA

    @property
    def passed(self) -> bool:
        return self.report is not None and self.report.verdict is Verdict.AC

    def verdict(self) -> dict[str, object]:
        """Return the field `verdict` of the reply."""
        if self.report is None:
            return {"verdict": "not measured", "candidates": self.tried}
        counts = {"passed": self.report.passed, "total": self.report.total}
        return {"verdict": self.report.verdict.value, **counts, "candidates": self.tried}


class Judge:
    """Opens its sandbox with the first program, in a thread."""

    def __init__(self, config: SandboxConfig) -> None:
        self.config = config
        self._sandbox: Sandbox | None = None
        self._lock = Lock()

    async def report(self, tests: Tests, text: str) -> Report:
        return await asyncio.to_thread(self._report, tests, text)

    def _report(self, tests: Tests, text: str) -> Report:
        with self._lock:
            if self._sandbox is None:
                self._sandbox = Sandbox(self.config).__enter__()
        return run_all(self._sandbox, [job_of(tests, text)])[0]

    def close(self) -> None:
        if self._sandbox:
            self._sandbox.close()


def job_of(tests: Tests, text: str) -> Job:
    """Return the job that judges a completion. Raises Refused (400) for values that are not plain
    data.
    """
    calls = tests.entry_point is not None
    try:
        problem = {
            "style": "call" if calls else "stdio",
            "entry_point": tests.entry_point,
            "limits": Limits.of_work(tests.cpu_s),
            "tests": [
                {key: decode(value) if calls else value for key, value in vars(case).items()}
                for case in tests.cases
            ],
        }
        return Job.read(
            {"id": "served", "source": extract_code(text, tests.entry_point), "problem": problem}
        )
    except (ValueError, RecursionError) as error:
        raise Refused(400, "invalid_tests", f"tests: {error}") from error


async def verified(
    service: Service, admitted: AdmittedRequest, tests: Tests, judge: Judge
) -> Verified:
    """Return the best candidate within the deadline, and record one observation with its verdict.

    Raises Refused if there is no candidate at all.
    """
    job_of(tests, "")
    clock = service.clock
    admitted.held, began, stood_still = [], clock.now(), clock.stood_still
    best: Verified | None = None
    try:
        [first] = await whole(service, admitted)
        best = Verified(first, None, None, 0)
        # A tenth is left for the way back.
        left_s = 0.9 * service.settings.deadline_s - (clock.now() - began)
        with suppress(TimeoutError, Refused):
            async with (
                asyncio.timeout(max(0.0, left_s)),
                aclosing(_judged(service, admitted, tests, judge, first)) as rising,
            ):
                async for better in rising:
                    best = better
        return best
    finally:
        seconds, suspended = clock.now() - began, clock.stood_still > stood_still
        for row in admitted.held:
            if best and row.response == admitted.id:
                # A test's program may have run out of time in a standstill.
                measured = best.measured and (best.passed or not suspended)
                verdict = best.passed if measured else None
                row = replace(row, verified=verdict, total_s=seconds, completion_tokens=best.tokens)
            service.observe(row)


async def _judged(
    service: Service, admitted: AdmittedRequest, tests: Tests, judge: Judge, first: EngineReply
) -> AsyncGenerator[Verified, None]:
    """Yield the best candidate so far after each verdict; the last one passes, or none does."""
    report = await judge.report(tests, first.text)
    best = Verified(first, report, report.verdict is Verdict.AC, 1, first.completion_tokens)
    yield best
    if best.passed or tests.candidates == 1:
        return
    heat, seed = max(admitted.request.temperature, TEMPERATURE), admitted.request.seed
    request = replace(
        admitted.request,
        temperature=heat,
        n=tests.candidates - 1,
        seed=None if seed is None else seed + 1,
    )
    version = str(admitted.entry.version) if admitted.entry else admitted.model
    others = replace(admitted, request=request, model=version, id=f"{admitted.id}-others", held=[])
    async with aclosing(_each(service, others)) as candidates:
        async for reply in candidates:
            report = await judge.report(tests, reply.text)
            tried, tokens = best.tried + 1, best.tokens + reply.completion_tokens
            better = best.report is None or report.passed > best.report.passed
            best = replace(best, tried=tried, tokens=tokens)
            if better:
                best = replace(best, reply=reply, report=report)
            yield best
            if best.passed:
                return


async def whole(service: Service, admitted: AdmittedRequest) -> list[EngineReply]:
    """Return whole completions, in the order of their index."""
    replies = [EngineReply() for _ in range(admitted.request.n)]
    async with aclosing(service.stream(admitted)) as deltas:
        async for delta in deltas:
            gather(replies, delta)
    return replies


async def _each(service: Service, admitted: AdmittedRequest) -> AsyncGenerator[EngineReply, None]:
    """Yield each completion when it is whole."""
    replies = [EngineReply() for _ in range(admitted.request.n)]
    async with aclosing(service.stream(admitted)) as deltas:
        async for delta in deltas:
            gather(replies, delta)
            if delta.ending:
                yield replies[delta.index]
