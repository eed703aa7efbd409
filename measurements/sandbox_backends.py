"""Programs per second of each sandbox backend.

`python -m measurements.sandbox_backends [programs] [repeats] [backend ...]`. docker needs an engine
(DOCKER_HOST), ray a cluster to join (RAY_ADDRESS); each has two workers. The figures are medians.
The backends alternate, so that other load slows all of them.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from contextlib import ExitStack

from sandbox.protocol import AssertTest, CallTest, Job, StdioTest, Verdict
from sandbox.sandbox import Sandbox, SandboxConfig

SQUARE = "def f(n):\n    return n * n\n"
CHECK = "def check(candidate):\n" + "".join(
    f"    assert candidate({n}) == {n * n}\n" for n in range(8)
)
STYLES = {
    "call, eight tests": Job(
        "job", SQUARE, "call", tuple(CallTest((n,), {}, n * n) for n in range(8)), "f"
    ),
    "assert": Job("job", SQUARE, "assert", (AssertTest(CHECK),), "f"),
    "stdio": Job("job", SQUARE + "print(f(int(input())))\n", "stdio", (StdioTest("5\n", "25\n"),)),
}


def rate(sandbox: Sandbox, job: Job, programs: int) -> float:
    """Return programs per second. Raises RuntimeError if a program is not accepted."""
    begun = time.perf_counter()
    reports = list(sandbox.run([job] * programs))
    if failed := [report for report in reports if report.verdict is not Verdict.AC]:
        raise RuntimeError(str(failed[0]))
    return programs / (time.perf_counter() - begun)


def main() -> None:
    programs, repeats = (
        int(text) for text in (*sys.argv[1:3], *("400", "3")[len(sys.argv[1:3]) :])
    )
    kinds = sys.argv[3:] or ["local", "docker", "ray"]
    print(
        f"{programs} programs, median of {repeats}, 2 workers, {os.cpu_count()} cores, load "
        f"{os.getloadavg()[0]:.1f} at the start\n"
    )
    with ExitStack() as stack:
        sandboxes = {
            kind: stack.enter_context(Sandbox(SandboxConfig(workers=2, backend=kind)))  # type: ignore[arg-type]
            for kind in kinds
        }
        print("| style | " + " | ".join(kinds) + " |\n|---|" + "---|" * len(kinds))
        for style, job in STYLES.items():
            rates: dict[str, list[float]] = {kind: [] for kind in kinds}
            for _ in range(repeats + 1):
                for kind, sandbox in sandboxes.items():
                    rates[kind].append(rate(sandbox, job, programs))
            print(
                f"| {style} | "
                + " | ".join(f"{statistics.median(rates[kind][1:]):.0f}/s" for kind in kinds)
                + " |",
                flush=True,
            )
        for kind, sandbox in sandboxes.items():
            print(f"\n{kind}: {sandbox.describe()}")


if __name__ == "__main__":
    main()
