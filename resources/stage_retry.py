"""Retries of a stage whose sandbox failed, so that one lost worker does not end a night's run.

Only failures that a retry can mend are retried: verdicts are journaled, and the retried stage asks
for the missing ones alone. Wrong input, a changed file or a held lease fails at once. A training
resumes from its newest checkpoint (resources/ray/job.py), and a killed run is started again by
Dagster (`run_retries` in dagster.yaml).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from evaluation.judging.reports import NotJudged, NotMeasurable
from problems.verification.problem_check import NoVerdict
from sandbox.sandbox import SandboxError

RETRIES, PAUSE_S = 2, 30.0


@contextmanager
def sandbox_failures_retried() -> Iterator[None]:
    """Have Dagster run the step again, at most twice, after the sandbox gave no verdict."""
    try:
        yield
    except NotMeasurable:  # the machine lacks a package: the same again
        raise
    except (SandboxError, NotJudged, NoVerdict) as error:
        raise dg.RetryRequested(max_retries=RETRIES, seconds_to_wait=PAUSE_S) from error
