"""Which failures of a stage make Dagster run its step again."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from evaluation.judging.reports import NotJudged, NotMeasurable
from problems.verification.verification_batch import NoVerdict
from resources import stage_retry
from resources.lease import LeaseHeld
from sandbox.sandbox import SandboxError


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_retry, "PAUSE_S", 0.0)


def attempts(error: Exception, failures: int) -> tuple[int, bool]:
    """Return how often a step that fails so many times is run, and whether it succeeds."""
    count = 0

    @dg.asset
    def stage() -> None:
        nonlocal count
        count += 1
        with stage_retry.sandbox_failures_retried():
            if count <= failures:
                raise error

    with dg.DagsterInstance.ephemeral() as instance:
        result = dg.materialize([stage], instance=instance, raise_on_error=False)
    return count, result.success


@pytest.mark.parametrize("error", [SandboxError(""), NotJudged(""), NoVerdict("")])
def test_a_failed_sandbox_is_retried(error: Exception) -> None:
    assert attempts(error, failures=2) == (3, True)


def test_the_third_failure_ends_the_step() -> None:
    assert attempts(NotJudged(""), failures=9) == (3, False)


@pytest.mark.parametrize("error", [NotMeasurable(""), LeaseHeld(None, Path("lease")), ValueError()])
def test_what_a_retry_cannot_mend_fails_at_once(error: Exception) -> None:
    assert attempts(error, failures=1) == (1, False)
