"""A job's seed varies draws, hashes and clocks; seed 0 does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sandbox.protocol import CallTest, Job
from sandbox.sandbox import Sandbox, run_all

VALUES = (
    "import datetime, random, time\n"
    "def f(): return [random.random(), hash('a'), datetime.date.today().year, time.timezone]"
)


def draws(sandbox: Sandbox, *seeds: int) -> list[str]:
    job = Job("x", VALUES, "call", (CallTest((), {}, None),), "f")
    jobs = [replace(job, seed=seed) for seed in seeds]
    return [report.tests[0].detail for report in run_all(sandbox, jobs)]


@pytest.mark.slow
def test_a_seed_varies_every_value_and_repeats_itself(sandbox: Sandbox) -> None:
    zero, one, again, seven, last = draws(sandbox, 0, 1, 1, 7, 0)
    assert zero == last
    assert one == again
    parts = [text.removeprefix("got [").split(",") for text in (zero, one, seven)]
    assert all(left != right for left, right in zip(parts[0], parts[1], strict=True))
    assert parts[1][0] != parts[2][0]
    assert parts[1][1] == parts[2][1]
