"""Alarms for values beyond their bounds over the last steps."""

from __future__ import annotations

from typing import Any

import pytest

from rewards.watch import LOST
from verl_jobs.metrics.alarms import LAST, alarms
from verl_jobs.samples import CUT


def steps(key: str, values: list[float]) -> list[dict[str, Any]]:
    return [{"step": at, key: value} for at, value in enumerate(values, 1)]


@pytest.mark.parametrize(
    ("key", "value", "parts"),
    [
        (CUT, 0.44, ["44%", "training.answer_tokens"]),
        (
            "training/rollout_probs_diff_mean",
            0.05,
            ["0.050", "training.importance_cap"],
        ),
        (LOST, 2.0, ["2.0"]),
    ],
)
def test_a_value_beyond_its_bound_raises_an_alarm_with_its_setting(
    key: str, value: float, parts: list[str]
) -> None:
    [alarm] = alarms(steps(key, [value] * LAST))
    assert all(part in alarm for part in parts)


def test_a_recovered_value_raises_no_alarm() -> None:
    assert alarms(steps(CUT, [1.0] * 10 + [0.0] * LAST)) == []


def test_a_falling_entropy_raises_an_alarm_before_the_early_stop() -> None:
    from verl_jobs.config.checkpoints import StopSettings
    from verl_jobs.trainer.early_stop import stop_reason

    falling = steps("actor/entropy", [0.5 * 0.8**at for at in range(12)])
    [alarm] = alarms(falling)
    assert "entropy" in alarm
    assert "21%" in alarm
    assert stop_reason(falling, StopSettings()) is None
    assert alarms(steps("actor/entropy", [0.5] * 12)) == []
    assert alarms(falling[:9]) == []


def test_missing_values_raise_no_alarm() -> None:
    assert alarms([{"step": 1}]) == []
    assert alarms([]) == []
