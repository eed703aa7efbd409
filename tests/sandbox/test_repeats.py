"""Jobs that run more than once, and the interface for coroutines."""

from __future__ import annotations

import pytest

from sandbox.protocol import Verdict
from sandbox.sandbox import Sandbox, run_all
from tests.sandbox.jobs import call

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
