"""Compare pass rates that a dataset publishes with those that Ratchet finds.

    python -m measurements.published_pass_rates PATH

PATH is a file of JSON lines in AceCode's shape, whose `inferences` have `completion` and
`pass_rate`. Prints the number of programs, and each one whose pass rate differs.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from problems.reading.prose import program
from problems.registry import load
from sandbox.protocol import Report, Verdict
from sandbox.sandbox import Sandbox, SandboxConfig


def main() -> None:
    path = Path(sys.argv[1])
    rows = [json.loads(line) for line in path.read_text().split("\n") if line]
    jobs, published = [], dict[str, float]()
    for problem, row in zip(load("published", path).problems, rows, strict=True):
        for number, each in enumerate(row["inferences"]):
            name = f"{row['id']} {number}"
            jobs.append(problem.job(program(each["completion"]), name))
            published[name] = each["pass_rate"]
    with Sandbox(SandboxConfig()) as sandbox:
        reports = list(sandbox.run(jobs))
    other = [each for each in reports if abs(_rate(each) - published[each.job_id]) > 1e-6]
    tests = sum(len(job.tests) for job in jobs)
    print(f"{len(jobs)} programs, {tests} tests run, {len(other)} programs with another pass rate")
    for report in other:
        details = {f"{test.verdict} {test.detail}"[:99] for test in report.tests}
        print(report.job_id, published[report.job_id], _rate(report), report.detail, details)


def _rate(report: Report) -> float:
    return sum(test.verdict is Verdict.AC for test in report.tests) / max(1, len(report.tests))


if __name__ == "__main__":
    main()
