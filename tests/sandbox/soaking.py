"""The owner of a sandbox in the soak test: `python tests/sandbox/soaking.py JOURNAL JOBS`.

It is a separate process because it is killed at random.

Job n is the same in each run. A line of the journal is {"job", "verdict"} for a report, or
{"owner", "done", "rss_kb"} for the memory of owner, workers and zygotes together.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from sandbox.protocol import AssertTest, CallTest, Job, Limits, StdioTest
from sandbox.sandbox import Sandbox, SandboxConfig

CORPUS = Path(
    os.environ.get(
        "RATCHET_HOSTILE", Path(__file__).resolve().parents[2].parent / "shared" / "hostile"
    )
)
ADD = "def f(a, b):\n    return a + b\n"
SAMPLE_EVERY = 250


def job(number: int) -> Job:
    """Return job n; odd ones are hostile."""
    program = hostile(number // 2) if number % 2 else honest(number // 2)
    return replace(program, job_id=str(number))


def honest(number: int) -> Job:
    """Return an honest job.

    The jobs alternate between styles and between what they leave behind: a file, a thread, a judge
    process.
    """
    limits, five = Limits(wall_s=20.0, cpu_s=20.0), (CallTest((2, 3), {}, 5),)
    loop = AssertTest(
        "def check(candidate):\n    for i in range(3):\n        assert candidate(i, 1) == i + 1\n"
    )
    plain = AssertTest("def check(candidate):\n    assert candidate(2, 2) == 4\n")
    return (
        Job("", ADD, "call", five, "f", limits=limits),
        Job("", ADD, "assert", (loop,), "f", limits=limits),
        Job("", ADD, "assert", (plain,), "f", limits=limits),
        Job(
            "",
            "open('left', 'w').write('x' * 9999)\nprint(input())",
            "stdio",
            (StdioTest(f"{number}\n", f"{number}\n"),),
            limits=limits,
        ),
        Job(
            "",
            "import threading\nthreading.Thread(target=print).start()\n" + ADD,
            "call",
            five,
            "f",
            limits=limits,
        ),
    )[number % 5]


def hostile(number: int) -> Job:
    """Return one program of the corpus, with a limit of one second.

    All programs take turns, in an order that changes with each round.
    """
    entries, problems = _corpus()
    entry = random.Random(f"soak {number // len(entries)}").sample(entries, len(entries))[
        number % len(entries)
    ]
    source = (CORPUS / "programs" / entry["file"]).read_bytes().decode()
    program = Job.read({"id": "", "source": source, "problem": problems[entry["problem"]]})
    return replace(
        program,
        limits=replace(
            program.limits,
            wall_s=min(1.0, program.limits.wall_s),
            cpu_s=min(1.0, program.limits.cpu_s),
        ),
    )


@cache
def _corpus() -> tuple[list[dict[str, Any]], dict[str, Any]]:
    entries = json.loads((CORPUS / "manifest.json").read_text())
    return [entry for entry in entries if entry["family"] != "control"], json.loads(
        (CORPUS / "problems.json").read_text()
    )


def rss_kb() -> int:
    """Return the resident memory of this process, its workers and zygotes, without programs."""
    generation, total = [psutil.Process()], 0
    for _ in range(4):  # owner, workers, outer halves, zygotes
        total += sum(_rss(process) for process in generation)
        generation = [child for process in generation for child in _children(process)]
    return total // 1024


def _rss(process: psutil.Process) -> int:
    with contextlib.suppress(psutil.Error):
        return int(process.memory_info().rss)
    return 0


def _children(process: psutil.Process) -> list[psutil.Process]:
    with contextlib.suppress(psutil.Error):
        return list(process.children())
    return []


def reported(journal: Path) -> list[dict[str, Any]]:
    """Return the journal's rows; skip a partial last line of a killed owner."""
    rows = []
    for line in journal.read_text().splitlines() if journal.exists() else []:
        with contextlib.suppress(json.JSONDecodeError):
            rows.append(json.loads(line))
    return rows


def main() -> None:
    journal, total = Path(sys.argv[1]), int(sys.argv[2])
    done = {row["job"] for row in reported(journal) if "job" in row}
    with journal.open("a") as out, Sandbox(SandboxConfig(workers=4)) as sandbox:
        out.write("\n")  # ends a partial line
        for count, report in enumerate(
            sandbox.run(job(number) for number in range(total) if number not in done), 1
        ):
            out.write(json.dumps({"job": int(report.job_id), "verdict": report.verdict}) + "\n")
            out.flush()
            if count % SAMPLE_EVERY == 0:
                out.write(
                    json.dumps({"owner": os.getpid(), "done": count, "rss_kb": rss_kb()}) + "\n"
                )


if __name__ == "__main__":
    main()
