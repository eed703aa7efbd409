"""Which failures of a stage make Dagster run its step again."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from evaluation.judging.reports import NotJudged, NotMeasurable
from problems.verification.problem_check import NoVerdict
from resources.home import Home
from resources.lease import LeaseHeld
from resources.stage_retry import sandbox_failures_retried
from sandbox.sandbox import SandboxError


@pytest.mark.parametrize("error", [SandboxError(""), NotJudged(""), NoVerdict("")])
def test_a_failed_sandbox_is_retried(error: Exception) -> None:
    with pytest.raises(dg.RetryRequested) as raised, sandbox_failures_retried():
        raise error
    assert raised.value.__cause__ is error


@pytest.mark.parametrize(
    "error", [NotMeasurable(""), LeaseHeld(None, Home(Path("home")).lease), ValueError()]
)
def test_what_a_retry_cannot_mend_fails_at_once(error: Exception) -> None:
    with pytest.raises(type(error)), sandbox_failures_retried():
        raise error
