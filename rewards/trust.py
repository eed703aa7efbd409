"""Handle verdicts with trust `shared`.

There the tests ran in the program's process, so the program could influence the verdict.
"""

from __future__ import annotations

from dataclasses import replace

from rewards.judging import Judged
from rewards.score import Score, hacking_facts
from sandbox.protocol import Report, Verdict


def without_shared_trust(judged: Judged) -> Judged:
    """Return the completion with no test passed if its trust is `shared`, else unchanged."""
    report = judged.report
    if report.trust != "shared" or report.verdict is Verdict.INFRA:
        return judged
    tests = tuple(replace(test, verdict=_failed(test.verdict)) for test in report.tests)
    return replace(judged, report=replace(report, verdict=_failed(report.verdict), tests=tests))


def unpaid(judged: Judged, score: Score, full_score: Score) -> Score:
    """Return `score`, in which no test of a `shared` verdict counts.

    Its facts come from the real report; `unpaid` is the difference to the full value.
    """
    report: Report = judged.report
    missing = (
        0.0 if score.value is None or full_score.value is None else full_score.value - score.value
    )
    return replace(
        score,
        verdict=report.verdict,
        passed=report.passed,
        total=report.total,
        unpaid=missing,
        **hacking_facts(judged),
    )


def _failed(verdict: Verdict) -> Verdict:
    return Verdict.WA if verdict is Verdict.AC else verdict
