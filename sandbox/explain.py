"""Shows the report of a program as a table for people, one line per test. Expected values are shown
only for visible tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sandbox.protocol import Job, Limits, Report, Verdict

COLUMNS = ("test", "verdict", "time", "came", "expected")
WIDEST = 60
HIDDEN = "(hidden)"


def table(request_id: Any, job: Job, report: Report) -> str:
    """Return the table."""
    rows = [COLUMNS, *_rows(job, report)]
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


def _rows(job: Job, report: Report) -> Iterator[tuple[str, ...]]:
    for at, result in enumerate(report.tests):
        answer = result.detail.removeprefix("got ") or (
            "as expected" if result.verdict is Verdict.AC else ""
        )
        visible = at < job.visible_tests and not job.kind.many_rows
        yield (
            result.name or str(at + 1),
            result.verdict,
            f"{result.wall_s:.3f} s",
            _short(answer),
            _short(job.kind.show(job.tests[at])) if visible else HIDDEN,
        )


def _short(text: str, widest: int = WIDEST) -> str:
    """Return one line that is safe for a terminal: a program wrote some of it."""
    line = "".join(letter if letter.isprintable() else " " for letter in " ".join(text.split()))
    return line if len(line) <= widest else line[: widest - 1] + "…"
