"""What a program must not try, whatever else it does.

In: what the sandbox counted while it ran, and what the linter found in its text. Out: 1, a little less for a hint, or -1 for an attempt: then the
whole reward is -1.
"""

from __future__ import annotations

import re

from problems.schema import Problem
from rewards.lint import Findings
from sandbox.protocol import Report, Verdict

HINT, MOST_HINTS = 0.05, 4  # what each costs, and how many do; a text alone is no proof
IMPORTS = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import|import[ \t]+([\w., \t]+))", re.MULTILINE
)
# what a task asks for whose own text imports this
ASKED = {"subprocess": "exec"} | dict.fromkeys(
    ("socket", "socketserver", "ssl", "requests", "urllib", "http", "ftplib", "smtplib"), "socket"
)


def security(
    report: Report, findings: Findings | None, task: Problem | None = None
) -> float | None:
    """-1 where the sandbox saw the program try something (`Report.tried`). Else 1, less HINT for each name in its text that no task needs.

    task: what its starter code, its first solution or tests in the program's process import is no hint, and to use it no attempt.

    None when the judge failed. Where the sandbox cannot count attempts, the hints are all there is. A text that the linter cannot read, and the
    compiler could, costs as much as all hints.
    """
    if report.verdict is Verdict.INFRA:
        return None
    if report.verdict is Verdict.CE:
        return 1.0  # never ran
    asked = _imported(task) if task else set()
    if report.tried and any(
        count
        for kind, count in report.tried.items()
        if kind not in {ASKED.get(name) for name in asked}
    ):
        return -1.0
    hints = (
        MOST_HINTS
        if findings is None
        else sum(name.split(".")[0] not in asked & {*ASKED, name} for name in findings.dangers)
    )
    return 1.0 - HINT * min(hints, MOST_HINTS)


def bounded(value: float, found: float) -> float:
    """What is left of a reward when `security` found this."""
    return -1.0 if found < 0 else max(-1.0, value - (1.0 - found))


def denied_calls(report: Report) -> int | None:
    """System calls that the sandbox refused, or None where it cannot count them."""
    denied = getattr(report, "denied", None)
    return None if denied is None else sum(denied.values())


def _imported(task: Problem) -> set[str]:
    """Modules that the problem itself imports; so do tests that share the program's process, whose attempts count as its own."""
    beside = [test["source"] for test in task.tests] if task.style == "unittest" else []
    text = "\n".join((task.starter_code, *task.solutions[:1], *beside))
    names = {
        name.split()[0].split(".")[0]
        for one, many in IMPORTS.findall(text)
        for name in (one or many).split(",")
        if name.strip()
    }
    return (
        names | {"subprocess"}
        if "os" in names and re.search(r"\bos\.(system|popen)\(", text)
        else names
    )
