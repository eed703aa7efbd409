"""Retries of a stage whose sandbox failed, so that one lost worker does not end a night's run; and
no retry of a run that took too long.

Only failures that a retry can fix are retried: verdicts are journaled, and the retried stage asks
for the missing ones alone. Wrong input, a changed file or a held lease fails at once. A training
resumes from its newest checkpoint (resources/ray/job.py), and a killed run is started again by
Dagster (`run_retries` in dagster.yaml).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import dagster as dg

from evaluation.judging.reports import NotJudged, NotMeasurable
from problems.verification.problem_check import NoVerdict
from sandbox.sandbox import SandboxError

RETRIES, PAUSE_S = 2, 30.0
MAX_RUNTIME = "dagster/max_runtime"  # seconds, a tag of a run


@contextmanager
def sandbox_failures_retried() -> Iterator[None]:
    """Have Dagster run the step again, at most twice, after the sandbox gave no verdict."""
    try:
        yield
    except NotMeasurable:  # the machine lacks a package: the same again
        raise
    except (SandboxError, NotJudged, NoVerdict) as error:
        raise dg.RetryRequested(max_retries=RETRIES, seconds_to_wait=PAUSE_S) from error


def refuse_retry_of_overlong_run(instance: dg.DagsterInstance, tags: Mapping[str, str]) -> None:
    """Raise dg.Failure in Dagster's own retry of a run that its time limit ended.

    tags: of the retry. Without this, Dagster starts such a run again at once, as it does after a
    killed process, and the next night finds the lease taken.
    """
    if "dagster/retry_number" not in tags:
        return
    before = instance.get_run_record_by_id(tags["dagster/parent_run_id"])
    if before is None or before.start_time is None or before.end_time is None:
        return
    limit_s = float(before.dagster_run.tags.get(MAX_RUNTIME, "inf"))
    if before.end_time - before.start_time > limit_s:
        raise dg.Failure(
            f"the run before this retry was ended after {limit_s / 3600:g} hours (profile key "
            "automation.max_hours); the next retraining resumes it",
            allow_retries=False,
        )
