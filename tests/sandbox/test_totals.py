"""Limits on a program over all its tests, on each isolation level that this machine supports."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from sandbox.protocol import CallTest, Job, Limits, Report, StdioTest
from sandbox.sandbox import Sandbox, run_all

FREE = Limits(wall_s=30.0, cpu_s=10.0, output_kb=64)
WORKS = "import time\nuntil = time.process_time() + 0.3\nwhile time.process_time() < until: pass\n"
WAITS = "import time\ntime.sleep(0.2)\n"
PRINTS = "print('x' * 40_000)\n"


def five(style: str, body: str, limits: Limits) -> Job:
    """Return a job that runs the same body five times: in five calls or in five processes."""
    if style == "call":
        inside = "".join(f"    {line}\n" for line in body.splitlines())
        return Job("job", f"def f():\n{inside}", "call", (CallTest(),) * 5, "f", limits=limits)
    return Job(
        "job",
        f"import sys\nsys.stdout = sys.stderr\n{body}",
        "stdio",
        (StdioTest("", ""),) * 5,
        limits=limits,
    )


def judged(sandbox: Sandbox, job: Job) -> Report:
    return run_all(sandbox, [job])[0]


BUDGETS = {
    "CPU": (WORKS, replace(FREE, total_cpu_s=0.5)),
    "time": (WAITS, replace(FREE, total_wall_s=0.5)),
}


@pytest.mark.slow
@pytest.mark.parametrize("style", ["call", "stdio"])
@pytest.mark.parametrize("what", BUDGETS)
def test_total_limits_apply_over_all_tests(level: Sandbox, style: str, what: str) -> None:
    body, limits = BUDGETS[what]
    report = judged(level, five(style, body, limits))
    assert report.verdict == "TLE", report
    assert report.passed < 5, report


def test_total_output_is_limited_over_all_runs(sandbox: Sandbox) -> None:
    report = judged(sandbox, five("stdio", PRINTS, replace(FREE, total_output_kb=100)))
    assert [test.verdict for test in report.tests] == ["AC", "AC", "OLE", "OLE", "OLE"]


def test_total_limits_are_read_from_json() -> None:
    text = (
        '{"style": "stdio", "tests": [{"stdin": "", "stdout": ""}], "limits": {"total_wall_s": '
        '3, "total_cpu_s": 1.5, "total_output_kb": 7}}'
    )
    assert Job.read({"id": 1, "source": "", "problem": json.loads(text)}).limits == Limits(
        total_wall_s=3, total_cpu_s=1.5, total_output_kb=7
    )
