"""Programs a second: `python benchmarks/sandbox.py [programs] [repeats]` prints a table, style by number of workers.

Small programs of eight tests (call, assert) or one run (stdio), each in a process of its own, the verdict decided apart. Medians of the repeats.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this file is not the room of its name

from sandbox.protocol import AssertTest, CallTest, Job, StdioTest, Verdict
from sandbox.sandbox import Sandbox, SandboxConfig

# name, source, and what it returns for the numbers 0 to 7
PROGRAMS = (
    ("square", "def f(n):\n    return n * n\n", [n * n for n in range(8)]),
    ("words", "def f(n):\n    return ' '.join(sorted(str(i) for i in range(n)))\n", [" ".join(map(str, range(n))) for n in range(8)]),
    (
        "primes",
        "def f(n):\n    out = []\n    for i in range(2, 10 * n):\n        if all(i % p for p in out):\n            out.append(i)\n    return out\n",
        [[i for i in range(2, 10 * n) if all(i % p for p in range(2, i))] for n in range(8)],
    ),
    (
        "counts",
        "from collections import Counter\n\n\ndef f(n):\n    return dict(Counter('abracadabra'[:n]))\n",
        [{c: "abracadabra"[:n].count(c) for c in "abracadabra"[:n]} for n in range(8)],
    ),
)


def jobs(style: str, programs: int) -> list[Job]:
    """That many jobs of a style, all accepted."""
    made = []
    for at in range(programs):
        name, source, wants = PROGRAMS[at % len(PROGRAMS)]
        if style == "call":
            made.append(Job(f"{name}{at}", source, "call", tuple(CallTest((n,), {}, want) for n, want in enumerate(wants)), "f"))
        elif style == "assert":
            check = "def check(candidate):\n" + "".join(f"    assert candidate({n}) == {want!r}\n" for n, want in enumerate(wants))
            made.append(Job(f"{name}{at}", source, "assert", (AssertTest(check),), "f"))
        else:
            made.append(Job(f"{name}{at}", f"{source}\nprint(f(int(input())))\n", "stdio", (StdioTest("5\n", f"{wants[5]}\n"),)))
    return made


def rate(style: str, workers: int, programs: int, repeats: int) -> tuple[float, str]:
    """Programs a second, and the isolation in force. Raises RuntimeError when a program is not accepted: then nothing was measured."""
    with Sandbox(SandboxConfig(workers=workers)) as sandbox:
        list(sandbox.run(jobs(style, 8 * workers)))  # starts the zygotes
        seen = []
        for _ in range(repeats):
            begun = time.perf_counter()
            reports = list(sandbox.run(jobs(style, programs)))
            seen.append(programs / (time.perf_counter() - begun))
            if failed := [report for report in reports if report.verdict is not Verdict.AC]:
                raise RuntimeError(f"{style}: {failed[0]}")
        return statistics.median(seen), sandbox.describe()


FLOOR = "import os\nfor _ in range({}):\n    pid = os.fork()\n    if not pid: os._exit(0)\n    os.waitpid(pid, 0)\n"


def floor(workers: int, programs: int) -> float:
    """Processes a second that are forked, exit at once, and are waited for: nothing can be faster."""
    begun = time.perf_counter()
    running = [subprocess.Popen([sys.executable, "-S", "-c", FLOOR.format(programs)]) for _ in range(workers)]
    for process in running:
        process.wait()
    return workers * programs / (time.perf_counter() - begun)


def main() -> None:
    programs = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    print(f"{programs} programs, median of {repeats}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start\n")
    print("| style | 1 worker | 2 workers |\n|---|---|---|")
    print(f"| fork and exit | {floor(1, 2000):.0f}/s | {floor(2, 2000):.0f}/s |", flush=True)
    for style in ("call", "assert", "stdio"):
        (one, isolation), (two, _) = rate(style, 1, programs, repeats), rate(style, 2, programs, repeats)
        print(f"| {style} | {one:.0f}/s | {two:.0f}/s |", flush=True)
    print(f"\nisolation: {isolation}")


if __name__ == "__main__":
    main()
