"""What a program must not do, whatever else it does.

In: what the linter and the sandbox saw. Out: 1, or -1 for a violation: then the whole reward is -1.
"""

from __future__ import annotations

from rewards.lint import Findings
from sandbox.protocol import Report, Verdict


def security(report: Report, findings: Findings | None) -> float | None:
    """-1 where the source holds a dangerous call, or the sandbox denied one while it ran, or the linter cannot read what the compiler could.

    None when the judge failed. Where the sandbox cannot count denied calls (`Report.denied` is None), the source alone decides.
    """
    if report.verdict is Verdict.INFRA:
        return None
    if report.verdict is Verdict.CE:
        return 1.0  # never ran
    return -1.0 if findings is None or findings.dangers or denied_calls(report) else 1.0


def denied_calls(report: Report) -> int | None:
    """System calls that the sandbox refused, or None where it cannot count them."""
    denied = getattr(report, "denied", None)
    return None if denied is None else sum(denied.values())
