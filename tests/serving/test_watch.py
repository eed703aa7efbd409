"""What one request is worth to each guardrail of a release."""

from __future__ import annotations

from dataclasses import replace

import pytest

from serving.gateway.observations import ErrorKind
from serving.release.plan import ERRORS, REFUSALS, TOKENS, plan_of
from serving.release.watch import FAILURES, harm_of
from tests.serving.traffic import ANSWER, SETTINGS

GUARDRAILS = plan_of(SETTINGS, "gradual", 1).guardrails


@pytest.mark.parametrize("error", FAILURES)
def test_a_failed_request_is_evidence_of_errors_alone(error: ErrorKind) -> None:
    row = replace(ANSWER, error=error)
    harms = {each.name: harm_of(each, row) for each in GUARDRAILS}
    assert {name: harm for name, harm in harms.items() if harm is not None} == {ERRORS: 1.0}


def test_an_answer_that_the_client_shaped_is_no_evidence_of_refusals_and_tokens() -> None:
    harms = {each.name: harm_of(each, replace(ANSWER, error="shaped")) for each in GUARDRAILS}
    assert (harms[ERRORS], harms[REFUSALS], harms[TOKENS]) == (0.0, None, None)


def test_a_request_that_failed_over_a_standstill_says_nothing_of_a_version() -> None:
    row = replace(ANSWER, first_token_s=None, total_s=720.0, error="suspended")
    assert [harm_of(each, row) for each in GUARDRAILS] == [None] * len(GUARDRAILS)
