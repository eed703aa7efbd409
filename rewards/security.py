"""Check a program for forbidden attempts.

In: the sandbox's counts while the program ran, and the linter's findings in its text. Out: 1, a
little less for a hint, or -1 for an attempt: then the whole reward is -1.
"""

from __future__ import annotations

import re

from problems.schema import Problem
from rewards.lint import Findings
from sandbox.languages import PYTHON
from sandbox.protocol import Report, Verdict

HINT, MAX_HINTS = 0.05, 4  # cost of each hint, and how many count; a text alone is no proof
IMPORTS = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import|import[ \t]+([\w., \t]+))", re.MULTILINE
)
# kind of attempt that is allowed where the task's own text imports this module
ALLOWED_BY_IMPORT = {"subprocess": "exec"} | dict.fromkeys(
    ("socket", "socketserver", "ssl", "requests", "urllib", "http", "ftplib", "smtplib"), "socket"
)


def security(
    report: Report, findings: Findings | None, task: Problem | None = None
) -> float | None:
    """Return -1 where the sandbox saw an attempt (`Report.tried`), else 1 less HINT per hint.

    A hint is a name in the program's text that no task needs.
    task: modules imported by its starter code, by its first solution or by tests in the program's
    process give no hint, and using them is no attempt.
    None when judging failed. Where the sandbox cannot count attempts, only hints count. A text that
    the compiler can read and the linter cannot costs as much as all hints.
    """
    if report.verdict is Verdict.INFRA:
        return None
    if report.verdict is Verdict.CE:
        return 1.0  # never ran
    imported = _imported(task) if task else set()
    if report.tried and any(
        count
        for kind, count in report.tried.items()
        if kind not in {ALLOWED_BY_IMPORT.get(name) for name in imported}
    ):
        return -1.0
    if task and task.language != PYTHON:
        return 1.0  # the linter reads Python
    hints = (
        MAX_HINTS
        if findings is None
        else sum(
            name.split(".")[0] not in imported & {*ALLOWED_BY_IMPORT, name}
            for name in findings.dangers
        )
    )
    return 1.0 - HINT * min(hints, MAX_HINTS)


def bounded(value: float, component: float) -> float:
    """Return the reward that is left after `security` returned `component`."""
    return -1.0 if component < 0 else max(-1.0, value - (1.0 - component))


def denied_calls(report: Report) -> int | None:
    """Return how many system calls the sandbox refused, or None where it cannot count them."""
    denied = getattr(report, "denied", None)
    return None if denied is None else sum(denied.values())


def _imported(task: Problem) -> set[str]:
    """Return the modules that the problem itself imports.

    Tests that share the program's process are included: their attempts count as the program's own.
    """
    test_sources = [test["source"] for test in task.tests] if task.kind.shared else []
    text = "\n".join((task.starter_code, *task.solutions[:1], *test_sources))
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
