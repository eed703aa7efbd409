"""Jobs in a line."""

from __future__ import annotations

from sandbox.protocol import AssertTest, CallTest, Job, Limits, StdioTest

QUICK = Limits(
    wall_s=20.0, cpu_s=2.0, memory_mb=256, output_kb=64
)  # the clock is for a machine that stands still: a test of it names its own


def call(
    source: str, *tests: CallTest, limits: Limits = QUICK, tolerance: float | None = None
) -> Job:
    """A job for a function f; without tests, f(2, 3) must be 5."""
    return Job(
        "job",
        source,
        "call",
        tests or (CallTest((2, 3), {}, 5),),
        "f",
        limits=limits,
        tolerance=tolerance,
    )


def stdio(
    source: str, stdin: str, stdout: str, *, limits: Limits = QUICK, tolerance: float | None = None
) -> Job:
    return Job(
        "job", source, "stdio", (StdioTest(stdin, stdout),), limits=limits, tolerance=tolerance
    )


def asserting(source: str, *checks: str, prompt: str = "", limits: Limits = QUICK) -> Job:
    """checks: one body of `check(candidate)` a test."""
    return Job(
        "job",
        source,
        "assert",
        tuple(AssertTest(f"def check(candidate):\n    {check}\n") for check in checks),
        "f",
        prompt,
        limits,
    )
