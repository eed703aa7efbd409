"""Jobs that run more than once, and the interface for coroutines."""

from __future__ import annotations

import asyncio

import pytest

from sandbox.protocol import Verdict
from sandbox.sandbox import Sandbox, run_all
from tests.sandbox.jobs import QUICK, call, stdio

FLICKERS = "import time\ndef f(a, b):\n    return a + b if time.monotonic_ns() // 1000 % 2 else 0"


def test_a_flickering_job_is_reported(sandbox: Sandbox) -> None:
    steady, flickering, wrong = run_all(
        sandbox,
        [
            call("def f(a, b):\n    return a + b"),
            call(FLICKERS),
            call("def f(a, b):\n    return 0"),
        ],
        repeat=20,
    )
    assert (steady.verdict, steady.flickers, len(steady.verdicts)) == (Verdict.AC, False, 20)
    assert (flickering.verdict, flickering.flickers) == (Verdict.WA, True)
    assert set(flickering.verdicts) == {Verdict.AC, Verdict.WA}
    assert (wrong.verdict, wrong.flickers) == (Verdict.WA, False)


def test_a_job_is_run_at_least_once(sandbox: Sandbox) -> None:
    with pytest.raises(ValueError, match=r"`repeat` .* 0"):
        run_all(sandbox, [call("")], repeat=0)


def test_coroutines_run_while_programs_run(sandbox: Sandbox) -> None:
    async def both() -> tuple[list[Verdict], int]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        ticking = asyncio.create_task(tick())
        jobs = [
            stdio("import time\ntime.sleep(0.3)\nprint(5)", "", "5", limits=QUICK) for _ in range(3)
        ]
        verdicts = [report.verdict async for report in sandbox.arun(jobs)]
        ticking.cancel()
        return verdicts, ticks

    verdicts, ticks = asyncio.run(both())
    assert verdicts == ["AC"] * 3
    assert ticks > 5


@pytest.mark.slow
def test_an_abandoned_run_does_not_block_the_sandbox(sandbox: Sandbox) -> None:
    async def first_alone() -> str:
        async for report in sandbox.arun([call("def f(a, b):\n    return 5") for _ in range(50)]):
            return report.verdict
        return ""

    async def too_long() -> None:
        async for _ in sandbox.arun([stdio("import time\ntime.sleep(1)", "", "")]):
            pass

    async def cancelled() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(too_long(), 0.2)

    assert asyncio.run(first_alone()) == "AC"
    asyncio.run(cancelled())
    assert run_all(sandbox, [call("def f(a, b):\n    return 5")])[0].verdict is Verdict.AC
