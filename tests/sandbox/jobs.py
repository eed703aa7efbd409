"""Short constructors of jobs."""

from __future__ import annotations

from sandbox.protocol import AssertTest, CallTest, Job, Limits, StdioTest

# The wall-clock limit is ample in case the machine stalls; a test of that limit sets its own.
QUICK = Limits(wall_s=20.0, cpu_s=2.0, memory_mb=256, output_kb=64)
# programs that write messages of their own to the sandbox's channel
SAY = "import os, struct\ndef say(text):\n    os.write(4, struct.pack('>I', len(text)) + text)\n"


def call(
    source: str, *tests: CallTest, limits: Limits = QUICK, tolerance: float | None = None
) -> Job:
    """Return a job for a function f; without tests, f(2, 3) must be 5."""
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
    """Return a job with one test per body of `check(candidate)`."""
    return Job(
        "job",
        source,
        "assert",
        tuple(AssertTest(f"def check(candidate):\n    {check}\n") for check in checks),
        "f",
        prompt,
        limits=limits,
    )
