"""Where the time of a step goes, by verl's timers."""

from __future__ import annotations

from typing import Any

import pytest

from verl_jobs.metrics.step_time import phases

ROWS: list[dict[str, Any]] = [
    {"step": 0},
    {"step": 1, "timing_s/step": 90.0, "timing_s/gen": 80.0},
    {"step": 2, "timing_s/step": 10.0, "timing_s/gen": 6.0, "timing_s/update_actor": 3.0},
    {
        "step": 3,
        "timing_s/step": 12.0,
        "timing_s/gen": 7.0,
        "timing_s/update_actor": 3.0,
        "timing_s/save_checkpoint": 2.0,
        "timing_s/testing": 5.0,
    },
]


def test_phases_are_medians_without_the_first_step() -> None:
    durations, whole = phases(ROWS)
    assert whole == 11.0
    assert [(duration.name, duration.seconds, duration.times) for duration in durations] == [
        ("gen", 6.5, 2),
        ("testing", 5.0, 1),
        ("update_actor", 3.0, 2),
        ("save_checkpoint", 2.0, 1),
        ("(no timer)", 0.5, 2),
    ]


def test_shares_are_of_the_time_of_all_steps_and_add_up_to_one() -> None:
    durations, _ = phases(ROWS)
    shares = {duration.name: duration.share for duration in durations}
    assert shares.pop("testing") is None  # validation is no part of a step
    assert shares["gen"] == pytest.approx(13 / 22)
    assert sum(share or 0.0 for share in shares.values()) == pytest.approx(1.0)


def test_a_run_without_a_step_has_no_phases() -> None:
    assert phases(ROWS[:1]) == ([], 0.0)
