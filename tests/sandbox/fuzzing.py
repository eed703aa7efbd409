"""Random programs, judged in a sandbox together with honest ones.

`python tests/sandbox/fuzzing.py LEVEL FROM TO` prints one line per finding.

Program n is the same in each run, so a finding can be reproduced from its seed. No program knows
the expected value, so none may be accepted, whatever it writes and to which descriptor. Every
program must get a report in time, and no worker may break or grow because of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import get_args

import psutil

from sandbox.config import Level
from sandbox.protocol import (
    AssertTest,
    CallTest,
    Job,
    Limits,
    Report,
    StdioTest,
    UnittestTest,
    Verdict,
)
from sandbox.sandbox import Sandbox, SandboxConfig

LIMITS = Limits(wall_s=0.6, cpu_s=0.4, memory_mb=64, output_kb=64, processes=24, files=64)
GRACE_S = 5.0  # beyond the program's own limits
MAX_HELD_KB = 300 * 1024
SECRET = 47_811
PRELUDE = """\
import atexit, ctypes, fcntl, gc, mmap, os, resource, signal, socket, struct, subprocess, sys, \
tempfile, threading, time
libc = ctypes.CDLL(None)
def frame(body): return struct.pack('>I', len(body)) + body
"""
VALUES: dict[str, tuple[str, ...]] = {
    "fd": ("0", "1", "2", "3", "4", "4", "4", "4", "5", "6", "7", "1000", "-1"),
    "data": (
        "bytes({size})",
        "frame(b'')",
        "frame(b'S')",
        "frame(b'L')",
        "frame(b'R{few}')",
        "frame(b'N')",
        "frame(b'C')",
        "frame(b'G')",
        "frame(b'K[1,[],{}]')",
        'frame(b\'X["ValueError","",false]\')',
        'frame(b\'V[0,"AC","",false]\')',
        "frame(b'M')",
        "frame(b'R[' + b'[],' * {size} + b'1]')",
        "frame(b'R{\"i\":\"0x' + b'f' * {size} + b'\"}')",
        "frame(b'R' + b'[' * {size})",
        "struct.pack('>I', {size}) + b'R'",
        "b'\\xff' * {size}",
        "b'x'",
    ),
    "size": ("0", "1", "5", "4096", "65536", "1000000", "20000000", "60000000", "2**31"),
    "few": ("0", "1", "2", "3", "5"),
    "count": ("3", "100", "5000", "10**9"),
    "pid": ("os.getpid()", "os.getppid()", "0", "1", "2", "-1", "-os.getpid()", "3"),
    "sig": ("1", "2", "9", "11", "13", "14", "15", "17", "19", "20", "24", "25", "34", "64"),
    "seconds": ("0", "0.01", "0.1", "0.3", "1", "60"),
    "name": (
        "'a'",
        "'b'",
        "'a/b'",
        "'.'",
        "'..'",
        "'/tmp/x'",
        "'/dev/shm/x'",
        "'\\n'",
        "'x' * 255",
        "tempfile.gettempdir()",
    ),
    "mode": ("0", "0o100", "0o300", "0o500", "0o777", "0o4777"),
    "bool": ("True", "False"),
}
# Statements with {placeholders} for VALUES, one a line; lines with # are headings.
ACTIONS = [
    line
    for line in Path(__file__).with_name("fuzz_actions.txt").read_text().strip().splitlines()
    if line[0] != "#"
]
# Compound statements around a {block} of statements, separated by lines with ---.
BLOCKS = Path(__file__).with_name("fuzz_blocks.txt").read_text().strip().split("\n---\n")


def source(seed: int) -> str:
    """Return the source of program n."""
    draw = random.Random(f"fuzz {seed}")
    body = _block(draw, draw.randint(1, 8), 3)
    inside = textwrap.indent(_block(draw, draw.randint(1, 2), 2), "    ")
    result = _filled(draw, draw.choice(("a + b", "{few}", "f", "f(a, b)", "open(0)")), 0)
    return f"{PRELUDE}kept = []\n{body}\ndef f(a, b):\n{inside}\n    return kept or {result}\n"


def _block(draw: random.Random, lines: int, depth: int) -> str:
    return "\n".join(_statement(draw, depth) for _ in range(lines))


def _statement(draw: random.Random, depth: int) -> str:
    if depth and draw.random() < 0.35:
        return _filled(draw, draw.choice(BLOCKS), depth - 1)
    action = _filled(draw, draw.choice(ACTIONS), 0)
    return action if draw.random() < 0.1 else f"try:\n    {action}\nexcept BaseException:\n    pass"


def _filled(draw: random.Random, text: str, depth: int) -> str:
    def value(match: re.Match[str]) -> str:
        what = match[1]
        if what in ("block", "deeper"):
            return textwrap.indent(
                _block(draw, draw.randint(1, 3), depth), "    " if what == "block" else " " * 8
            )
        return _filled(draw, draw.choice(ACTIONS if what == "action" else VALUES[what]), 0)

    return re.sub(r"\{(\w+)\}", value, text)


def program(seed: int) -> Job:
    """Return program n as a job whose tests, of a random style, it does not know."""
    text, name = source(seed), f"fuzz {seed}"
    each = (
        "class T(unittest.TestCase):\n    def test(self):\n"
        f"        self.assertEqual(f(2, 3), {SECRET})\n"
    )
    return (
        Job(name, text, "stdio", (StdioTest("2 3\n", f"{SECRET}\n"),), limits=LIMITS),
        Job(
            name,
            text,
            "call",
            (CallTest((2, 3), {}, SECRET), CallTest((3, 4), {}, SECRET)),
            "f",
            limits=LIMITS,
        ),
        Job(
            name, text, "call", (CallTest((2, 3), {}, [SECRET]),), "f", limits=LIMITS, compare="set"
        ),
        Job(
            name,
            text,
            "assert",
            (AssertTest(f"def check(f):\n    assert f(2, 3) == {SECRET}\n"),),
            "f",
            limits=LIMITS,
        ),
        Job(
            name,
            text,
            "assert",
            (
                AssertTest(
                    f"def check(f):\n    for i in range(3):\n        assert f(i, 3) == {SECRET}\n"
                ),
            ),
            "f",
            limits=LIMITS,
        ),
        Job(
            name, text, "unittest", (UnittestTest(f"import unittest\n{each}"),), "f", limits=LIMITS
        ),
    )[random.Random(seed).choices(range(6), (8, 8, 2, 4, 6, 1))[0]]


def neighbour(number: int) -> tuple[Job, Verdict]:
    """Return an honest job and the verdict that it gets when nothing else runs."""
    limits = Limits(wall_s=60.0, cpu_s=30.0)
    loop = AssertTest("def check(f):\n    for i in range(3):\n        assert f(i, 1) == i + 1\n")
    add, five = "def f(a, b):\n    return a + b\n", (CallTest((2, 3), {}, 5),)
    wrote = (
        "import os\nassert os.listdir() == ['program.py']\nopen('left', 'w').write('x')\n"
        "print(int(input()) * 2)"
    )
    job, verdict = (
        (Job("", add, "call", five, "f", limits=limits), Verdict.AC),
        (Job("", "def f(a, b):\n    return a * b\n", "call", five, "f", limits=limits), Verdict.WA),
        (
            Job("", wrote, "stdio", (StdioTest(f"{number}\n", f"{2 * number}\n"),), limits=limits),
            Verdict.AC,
        ),
        (Job("", add, "assert", (loop,), "f", limits=limits), Verdict.AC),
        (Job("", add + "f(1, '')", "call", five, "f", limits=limits), Verdict.RE),
    )[number % 5]
    return replace(job, job_id=f"honest {number}"), verdict


def jobs(first: int, last: int) -> Iterator[Job]:
    for number in range(first, last):
        yield program(number)
        yield neighbour(number)[0]


def wrong(report: Report) -> str:
    """Describe what is wrong with a report; empty if nothing is."""
    kind, number = report.job_id.split()
    if kind == "honest":
        right = neighbour(int(number))[1]
        return "" if report.verdict is right else f"{report.verdict} for {right}: {report.detail}"
    forged = report.verdict is Verdict.AC and report.trust == "apart"
    return f"{report.verdict}: {report.detail}" if forged or report.verdict == "INFRA" else ""


def late(report: Report) -> bool:
    """Return whether the report took too long.

    The judge's own work is not the program's time; it may take as long again.
    """
    longest_s = GRACE_S + 2 * LIMITS.wall_s * report.total
    return report.job_id.startswith("fuzz") and report.wall_s > longest_s


def workers() -> dict[int, int]:
    """Return pid -> peak resident memory in kB of each worker."""
    peaks = {}
    for process in psutil.Process().children():
        with contextlib.suppress(OSError, IndexError, psutil.Error):  # it may end now
            if "worker_process.py" in " ".join(process.cmdline()):
                peaks[process.pid] = int(
                    Path(f"/proc/{process.pid}/status").read_text().split("VmHWM:")[1].split()[0]
                )
    return peaks


def main() -> None:
    level, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    assert level in get_args(Level)
    workers_asked = int(os.environ.get("RATCHET_FUZZ_WORKERS", "4"))
    config = SandboxConfig(workers=workers_asked, isolation=level)  # type: ignore[arg-type]
    with Sandbox(config) as sandbox:
        before, slow = set(workers()), list[int]()
        for report in sandbox.run(jobs(first, last)):
            if late(report):
                slow.append(int(report.job_id.removeprefix("fuzz ")))
            if fault := wrong(report):
                print(
                    json.dumps({"job": report.job_id, "level": level, "fault": fault}), flush=True
                )
            if set(workers()) != before:
                print(
                    json.dumps(
                        {"job": f"about {report.job_id}", "level": level, "fault": "a worker broke"}
                    ),
                    flush=True,
                )
                before = set(workers())
        for number in slow:  # once more without other programs: the machine may have been busy
            for report in sandbox.run([program(number)]):
                if late(report):
                    print(
                        json.dumps(
                            {
                                "job": report.job_id,
                                "level": level,
                                "fault": f"answered after {report.wall_s:.1f} s",
                            }
                        ),
                        flush=True,
                    )
        if (most := max(workers().values(), default=0)) > MAX_HELD_KB:
            print(
                json.dumps(
                    {
                        "job": f"of {first} to {last}",
                        "level": level,
                        "fault": f"a worker held {most} kB",
                    }
                ),
                flush=True,
            )


if __name__ == "__main__":
    main()
