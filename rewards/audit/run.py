"""Run a task folder's solution and tests in the sandbox, where they need only Python and a shell.

Each attempt builds the folder anew. Paths such as /app lie below the sandbox's scratch folder, and
installers do nothing, so a task whose tests need what the sandbox lacks is not run.
"""

from __future__ import annotations

import base64
import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from problems.task_folders.dockerfile import Image
from problems.task_folders.task_folder import TaskFolder
from rewards.audit.findings import (
    NOTHING,
    OTHERS,
    PLANTED,
    REPEATS,
    SOLUTION,
    WRONG,
    Finding,
    Status,
)
from sandbox.protocol import LOAD, Job, Limits, Report, Verdict
from sandbox.styles.repository import FUTURE
from sandbox.styles.repository import HARNESS as REPOSITORY

HARNESS = REPOSITORY + Path(__file__).with_name("harness.py").read_text("utf-8").replace(FUTURE, "")
SECONDS = 10.0  # of CPU for each of a task's two jobs
REPEATED, DRAWN = 2, 8  # runs of the tests on one solution; where something may vary
DRAWS = re.compile(
    r"random|urandom|uuid|secrets|shuf\b|time\(\)|now\(|perf_counter|set\(|hash\(|date\b|sleep"
)
# The attempts of the two jobs of a task, which run side by side, and the checks that they are for.
ATTEMPTS = (
    {"solution": SOLUTION, "again": REPEATS, "otherwise": OTHERS},
    {"nothing": NOTHING, "plants": PLANTED, "empty": WRONG, "numbers": WRONG, "header": WRONG,
     "hollow": WRONG},
)  # fmt: skip
CHECKED = dict.fromkeys(check for job in ATTEMPTS for check in job.values())


def jobs(task: TaskFolder, image: Image, number: int, seconds: float) -> Iterator[Job]:
    """Yield the jobs of a task; their ids are its number and theirs."""
    told = f"{task.tests_text}\n{task.solution_text}"
    facts = {
        "kind": task.kind,
        "files": _packed(image.files), "solution": _packed(task.solution),
        "tests": _packed(task.tests), "workdir": image.workdir if image.workdir != "/" else "/app",
        "environment": image.environment, "runs": image.runs, "solve": task.solve,
        "test": task.test, "repeats": DRAWN if DRAWS.search(told) else REPEATED,
        "exact": bool(re.search(r"indent|exact|byte|format", task.instruction, re.I)),
        "pytest": "pytest" in task.tests_text,
    }  # fmt: skip
    filled = f"\n\nTASK |= json.loads({json.dumps(json.dumps(facts))})\n"
    source = HARNESS + filled
    limits = Limits(
        wall_s=LOAD * seconds,
        cpu_s=seconds,
        memory_mb=512,
        total_wall_s=LOAD * seconds,
        total_cpu_s=seconds,
    )
    for at, attempts in enumerate(ATTEMPTS):
        names = [name for name in attempts if task.solve or attempts[name] in (NOTHING, PLANTED)]
        if not names:
            continue
        methods = "".join(
            f"    def test_{order}_{name}(self):\n"
            f"        {'' if name == 'again' else 'build(self), '}{name}(self)\n\n"
            for order, name in enumerate(names)
        )
        test = {"source": f"import unittest\n\n\nclass Attempts(unittest.TestCase):\n{methods}"}
        yield Job.read(
            {
                "id": f"{number}/{at}",
                "source": source,
                "problem": {
                    "style": "unittest",
                    "entry_point": "build",
                    "tests": [test],
                    "limits": limits,
                },
            }
        )


def _packed(files: Mapping[str, bytes]) -> dict[str, str]:
    inner = {posixpath.normpath(f"/{path}").lstrip("/"): data for path, data in files.items()}
    return {path: base64.b64encode(data).decode() for path, data in inner.items()}


def outcomes(task: TaskFolder, reports: Mapping[str, Report], number: int) -> Iterator[Finding]:
    """Yield what the attempts of a task found."""
    for at, attempts in enumerate(ATTEMPTS):
        report = reports.get(f"{number}/{at}")
        rows = {row.name.rpartition("_")[2]: row for row in report.tests} if report else {}
        for name, check in attempts.items():
            row = rows.get(name)
            if report and report.verdict is Verdict.INFRA:
                yield Finding(check, "error", report.detail)
            elif row is None and any(each in rows for each in attempts if attempts[each] == check):
                continue  # there was nothing to change in this way
            elif row is None:
                yield Finding(check, "skip", _why_not(report))
            else:
                yield _finding(check, name, row.verdict, row.detail, row.wall_s)


def _why_not(report: Report | None) -> str:
    """Return why a report has no row of an attempt."""
    if report is None:
        return "the task has no solution to run"
    broken = next((row for row in report.tests if not row.name), None)
    return (
        f"not reached: {broken.verdict} {broken.detail}"
        if broken
        else "nothing of it could be changed"
    )


def _finding(check: str, name: str, verdict: Verdict, detail: str, wall_s: float) -> Finding:
    detail = detail.removeprefix("AssertionError: ")
    status: Status = "pass" if verdict is Verdict.AC else "fail"
    if detail.startswith("cannot run: "):
        return Finding(check, "skip", detail.removeprefix("cannot run: "), wall_s)
    if status == "fail" and verdict is not Verdict.WA:
        # Neither refused nor accepted: it ran into a limit, or the harness itself failed.
        return Finding(check, "skip", f"{name}: {verdict} {detail}".strip(), wall_s)
    return Finding(check, status, f"{name}: {detail}" if detail else "", wall_s)
