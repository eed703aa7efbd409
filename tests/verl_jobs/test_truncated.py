"""A completion counts as truncated by its stop reason, or by its length if it has none."""

from __future__ import annotations

import pytest

from verl_jobs.trainer.truncated import is_truncated


@pytest.mark.parametrize(
    ("extra_fields", "tokens", "cut"),
    [
        ({"stop_reason": "length"}, 3, True),  # a program of a conversation
        ({"stop_reason": "completed"}, 5, False),  # it ends with the end token
        ({}, 5, True),  # an agent loop without a stop reason
        ({}, 4, False),
    ],
)
def test_a_completion_counts_as_truncated_by_its_stop_reason(
    extra_fields: dict[str, str], tokens: int, cut: bool
) -> None:
    assert is_truncated(extra_fields, [0.0] * tokens, 5) is cut
