"""Load rows as their datasets publish them, and run each reference against its tests.

    python -m measurements.published_rows PATH...

PATH is a file or a folder of published rows, for example a checkout of github.com/exercism/python.
Prints for each path the rows, the problems, the problems whose first reference is accepted, and why
the others are not.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from problems.registry import load
from sandbox.protocol import Report, Verdict
from sandbox.sandbox import Sandbox, SandboxConfig

HEAD = "| path | shape | rows | problems | with a reference | accepted |\n|---|---|---|---|---|---|"


def main() -> None:
    reasons = list[str]()
    print(HEAD)
    for path in map(Path, sys.argv[1:]):
        loaded = load("published", path)
        jobs = [
            problem.job(problem.solutions[0], problem.problem_id)
            for problem in loaded.problems
            if problem.solutions
        ]
        with Sandbox(SandboxConfig()) as sandbox:
            reports = list(sandbox.run(jobs))
        accepted = sum(report.verdict is Verdict.AC for report in reports)
        shapes = sorted({str(problem.extra.get("shape")) for problem in loaded.problems})
        print(
            f"| {path.name} | {', '.join(shapes)} | {loaded.rows} | {len(loaded.problems)} | "
            f"{len(jobs)} | {accepted} |"
        )
        rejected = Counter(row.reason for row in loaded.rejected)
        reasons += [f"{path.name}: {count} {reason}" for reason, count in rejected.most_common(9)]
        reasons += [_why(report) for report in reports if report.verdict is not Verdict.AC]
    print("\n".join(["", *reasons]))


def _why(report: Report) -> str:
    failed = next((test for test in report.tests if test.verdict is not Verdict.AC), None)
    detail = " ".join((report.detail or (failed.detail if failed else "")).split())
    return f"{report.job_id}: {report.verdict} {detail}"[:160]


if __name__ == "__main__":
    main()
