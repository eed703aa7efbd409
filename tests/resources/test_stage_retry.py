"""Which failures of a stage make Dagster run its step again."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import dagster as dg
import pytest

from evaluation.judging.reports import NotJudged, NotMeasurable
from problems.verification.problem_check import NoVerdict
from resources.home import Home
from resources.lease import LeaseHeld
from resources.stage_retry import (
    MAX_RUNTIME,
    refuse_retry_of_overlong_run,
    sandbox_failures_retried,
)
from sandbox.sandbox import SandboxError


@dg.asset
def stage() -> None: ...


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


@pytest.mark.parametrize(("limit", "refused"), [("0", True), ("3600", False)])
def test_a_retry_of_a_run_that_its_time_limit_ended_is_refused(limit: str, refused: bool) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        first = dg.materialize([stage], instance=instance, tags={MAX_RUNTIME: limit})
        retry = {"dagster/parent_run_id": first.run_id, "dagster/retry_number": "1"}
        with pytest.raises(dg.Failure, match="max_hours") if refused else nullcontext():
            refuse_retry_of_overlong_run(instance, retry)
        refuse_retry_of_overlong_run(instance, {"dagster/parent_run_id": first.run_id})
