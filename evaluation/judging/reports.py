"""Reports of the sandbox for many jobs, with retries where the sandbox itself failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sandbox.protocol import Job, Report, Verdict
from sandbox.sandbox import Runs

ATTEMPTS = 3  # for a job where the sandbox failed, not the program


class NotJudged(RuntimeError):
    """The sandbox gave no verdict after all retries. There is no score then; zero is wrong."""


class NotMeasurable(NotJudged):
    """A task needs what this machine lacks, such as a package."""


def reports(jobs: Mapping[str, Job], sandbox: Runs) -> Iterator[Report]:
    """Yield a report for each job (by its id) as they come. Raises NotJudged after the last retry.

    An INFRA report is yielded only for a job that no retry helps (`report.unusable`): its packages
    are not installed, or its tests cannot be run.
    """
    waiting, last = dict(jobs), ""
    for _ in range(ATTEMPTS):
        for report in sandbox.run(list(waiting.values())):
            if report.verdict is Verdict.INFRA and not report.unusable:
                last = report.detail
                continue
            del waiting[report.job_id]
            yield report
        if not waiting:
            return
    why = f": {last}" if last else ""
    raise NotJudged(
        f"{len(waiting)} of {len(jobs)} programs have no verdict after {ATTEMPTS} attempts, "
        "the first is "
        f"{next(iter(waiting))}{why}; run it again, programs that were judged keep their verdicts"
    )
