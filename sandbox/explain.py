"""Shows the report of a program as a table for people, one line per test. Expected values are shown
only for visible tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sandbox.protocol import CallTest, Job, Limits, Report, StdioTest, Test, Verdict

COLUMNS = ("test", "verdict", "time", "came", "expected")
WIDEST = 60
HIDDEN = "(hidden)"


def table(request_id: Any, job: Job, report: Report, visible: int) -> str:
    """Return the table. visible: how many of the first tests may be shown."""
    rows = [COLUMNS, *_rows(job, report, visible)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(COLUMNS))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    head = f"{request_id}: {report.verdict}, {report.passed} of {report.total} tests"
    used = (
        f"{report.wall_s:.3f} s, {report.cpu_s:.3f} s of CPU, "
        f"{report.peak_bytes / 2**20:.1f} MB, isolation {report.isolation}, trust "
        f"{report.trust}"
    )
    limits = (
        f"limits: {job.limits.wall_s:g} s, {job.limits.cpu_s:g} s of CPU a test, "
        f"{job.limits.memory_mb} MB{_totals(job.limits)}"
    )
    why = [f"why: {_short(report.detail, 140)}"] if report.verdict is Verdict.INFRA else []
    return "\n".join([head, used, limits, *why, "", *lines, ""])


def _totals(limits: Limits) -> str:
    totals = (
        (limits.total_wall_s, "s"),
        (limits.total_cpu_s, "s of CPU"),
        (limits.total_output_kb, "kB of output"),
    )
    texts = [f"{most:g} {unit}" for most, unit in totals if most is not None]
    return f"; all tests: {', '.join(texts)}" if texts else ""


def _rows(job: Job, report: Report, visible: int) -> Iterator[tuple[str, ...]]:
    of_methods = job.style == "unittest"
    for at, result in enumerate(report.tests):
        answer = result.detail.removeprefix("got ") or (
            "as expected" if result.verdict is Verdict.AC else ""
        )
        test = job.tests[0 if of_methods else at]
        yield (
            result.name or str(at + 1),
            result.verdict,
            f"{result.wall_s:.3f} s",
            _short(answer),
            _short(_expected(test)) if at < visible and not of_methods else HIDDEN,
        )


def _expected(test: Test) -> str:
    if isinstance(test, CallTest):
        return repr(test.expected)
    return test.stdout if isinstance(test, StdioTest) else test.source


def _short(text: str, widest: int = WIDEST) -> str:
    """Return one line that is safe for a terminal: a program wrote some of it."""
    line = "".join(letter if letter.isprintable() else " " for letter in " ".join(text.split()))
    return line if len(line) <= widest else line[: widest - 1] + "…"
