"""Handle verdicts with trust `shared`.

There the tests ran in the program's process, so the program could influence the verdict.
"""

from __future__ import annotations

from dataclasses import replace

from rewards.judging import Judged
from rewards.score import Score, seen
from sandbox.protocol import Report, Verdict


def without_shared_trust(judged: Judged) -> Judged:
    """Return the completion with no test passed if its trust is `shared`, else unchanged."""
    report = judged.report
    if report.trust != "shared" or report.verdict is Verdict.INFRA:
        return judged
    tests = tuple(replace(test, verdict=_failed(test.verdict)) for test in report.tests)
    return replace(judged, report=replace(report, verdict=_failed(report.verdict), tests=tests))


def unpaid(judged: Judged, paid: Score, in_full: Score) -> Score:
    """Return the score `paid`, in which no test of a `shared` verdict counts.

    Its facts come from the real report; `unpaid` is the difference to the full value.
    """
    report: Report = judged.report
    missing = 0.0 if paid.value is None or in_full.value is None else in_full.value - paid.value
    return replace(
        paid,
        verdict=report.verdict,
        passed=report.passed,
        total=report.total,
        unpaid=missing,
        **seen(judged),
    )


def _failed(verdict: Verdict) -> Verdict:
    return Verdict.WA if verdict is Verdict.AC else verdict
