"""What a reward makes of a verdict with trust `shared`: the tests ran beside the program, so its own word went into the verdict."""

from __future__ import annotations

from dataclasses import replace

from rewards.judging import Judged
from rewards.score import Score, seen
from sandbox.protocol import Report, Verdict


def without_shared_trust(judged: Judged) -> Judged:
    """The same answer with no test passed, if its trust is `shared`; unchanged otherwise."""
    report = judged.report
    if report.trust != "shared" or report.verdict is Verdict.INFRA:
        return judged
    tests = tuple(replace(test, verdict=_failed(test.verdict)) for test in report.tests)
    return replace(judged, report=replace(report, verdict=_failed(report.verdict), tests=tests))


def unpaid(judged: Judged, paid: Score, in_full: Score) -> Score:
    """The score that counts no test of a `shared` verdict, with the facts of the real report and the difference to the full value."""
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
