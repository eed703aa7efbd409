"""What the tests say. In: the sandbox's report. Out: a value in [-1, 1], or None when the judge failed."""

from __future__ import annotations

from sandbox.protocol import Report, Verdict


def correctness(report: Report, *, sparse: bool) -> float | None:
    """sparse: 1 where every test passes, else -1. Otherwise the share of tests passed, from -1 (none) to 1 (all)."""
    if report.verdict is Verdict.INFRA:
        return None
    solved = report.verdict is Verdict.AC
    if sparse or solved:
        return 1.0 if solved else -1.0
    # a program that passed each test and yet is not accepted broke a limit: never worth a solution
    return 2.0 * min(report.passed, report.total - 1) / report.total - 1.0
