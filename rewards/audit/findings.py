"""The checks of an audit, and what they found on a task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

# As in OpenEnv's reports; "skip" is shown as "not run" and is never a pass.
Status = Literal["pass", "fail", "skip", "error"]
STATUSES: tuple[Status, ...] = ("fail", "error", "skip", "pass")  # the worst first

LAYOUT = "static.manifest"
SOLUTION = "semantic.oracle_max"
NOTHING = "semantic.floor_gap"
WRONG = "semantic.canary_floor"
REPEATS = "semantic.verifier_determinism"
LEAK = "semantic.no_solution_leakage"
CONTAINED = "runtime.oracle_containment"
PLANTED = "ratchet.planted_files"
OTHERS = "ratchet.other_solutions"
KNOWN = "ratchet.contamination"


@dataclass(frozen=True)
class Check:
    """A check: its title in the table, and what the author of a task does when it fails."""

    title: str
    remediation: str


CHECKS: Mapping[str, Check] = {
    LAYOUT: Check("files complete", "add what is missing to the task's folder"),
    SOLUTION: Check("solution passes", "correct the solution, or the tests that refuse it"),
    NOTHING: Check("nothing fails", "add a test that fails where nothing was done"),
    WRONG: Check("wrong solutions fail", "add tests that refuse the solution shown"),
    PLANTED: Check("planted files fail", "start the tests where the model cannot write"),
    REPEATS: Check("same verdict again", "remove what varies from the tests or the solution"),
    LEAK: Check("no answer in the task", "remove the answer from what the model can read"),
    CONTAINED: Check("tests out of reach", "keep solution and tests out of the image"),
    OTHERS: Check("other solutions pass", "compare what a result means, not how it is written"),
    KNOWN: Check("not a benchmark's", "leave the task out of training"),
}


@dataclass(frozen=True)
class Finding:
    """The outcome of one check. evidence: what was seen; for "skip", why it was not run."""

    check_id: str
    status: Status
    evidence: str = ""
    duration_s: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return it in the form of a result in OpenEnv's reports."""
        remediation = CHECKS[self.check_id].remediation if self.status == "fail" else None
        return {
            "check_id": self.check_id,
            "status": self.status,
            "measured": {},
            "evidence": [self.evidence] if self.evidence else [],
            "remediation": remediation,
            "duration_s": round(self.duration_s, 3),
        }


@dataclass(frozen=True)
class AuditedTask:
    """All findings on a task, in the order of CHECKS. kind: rows, harbor, openenv, ..."""

    name: str
    kind: str
    findings: tuple[Finding, ...]
    duration_s: float

    @property
    def status(self) -> Status:
        """The status of its worst finding: "pass" only if every check was run."""
        found = {finding.status for finding in self.findings}
        return next((status for status in STATUSES if status in found), "skip")

    def to_json(self) -> dict[str, Any]:
        results = [finding.to_json() for finding in self.findings]
        facts = {"task": self.name, "kind": self.kind, "status": self.status}
        return facts | {"duration_s": round(self.duration_s, 3), "results": results}


def audited(
    name: str,
    kind: str,
    findings: Iterable[Finding],
    duration_s: float,
    checks: Iterable[str],
    rest: str = "",
) -> AuditedTask:
    """Return the task with the worst finding of each of the checks, the first of equals.

    rest: why a check without a finding was not run.
    """
    worst: dict[str, Finding] = {}
    for finding in findings:
        before = worst.setdefault(finding.check_id, finding)
        if STATUSES.index(finding.status) < STATUSES.index(before.status):
            worst[finding.check_id] = finding
    ordered = [worst.get(check_id) or Finding(check_id, "skip", rest) for check_id in checks]
    return AuditedTask(name, kind, tuple(ordered), duration_s)
