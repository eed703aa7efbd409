"""The figures of a running training that Dagster shows."""

from __future__ import annotations

import dagster as dg
import pytest

from assets.live import live
from verl_jobs.job import VALIDATION

HISTORY = [
    {"step": 0, VALIDATION: 0.25},
    {"step": 1, "critic/score/mean": 0.1, "timing_s/step": 1800.0, "actor/entropy": 0.4},
    {"step": 2, "critic/score/mean": 0.2, "timing_s/step": 1800.0, "actor/entropy": 0.3},
]
MESSAGES = [
    {"step": 1, "cpu_percent": 80.0, "memory_gib": 7.0},
    {"step": 2, "cpu_percent": 90.0, "memory_gib": 7.5},
]


def test_dagster_gets_figures_of_run_and_machine_as_numbers() -> None:
    figures = live(HISTORY, MESSAGES, 4, 0.0, 0.0)
    numbers = {name: value for name, value in figures.items() if isinstance(value, float)}
    assert numbers == {
        "reward": 0.2,
        "entropy": 0.3,
        "seconds_a_step": 1800.0,
        "validation": 0.25,
        "cpu_percent": 90.0,
        "memory_gib": 7.5,
        "minutes_left": 60.0,
    }
    assert figures["step"] == 2
    assert figures["steps"] == 4


def test_cost_and_end_are_estimated_from_finished_steps() -> None:
    figures = live(HISTORY, MESSAGES, 4, price=3.0, now=1000.0)
    assert figures["cost_of_the_steps"] == pytest.approx(3.0)
    end = figures["expected_end"]
    assert isinstance(end, dg.TimestampMetadataValue)
    assert end.value == pytest.approx(1000.0 + 3600)


def test_without_price_or_message_their_figures_are_missing() -> None:
    figures = live(HISTORY, [], 4, 0.0, 0.0)
    assert not {"cost_of_the_steps", "cpu_percent"} & set(figures)
    assert "data:image/svg+xml" in str(figures["curves"].value)


def test_each_of_several_machines_has_its_own_figures() -> None:
    figures = live(
        HISTORY,
        [
            {
                "step": 2,
                "cpu_percent of 10.0.0.3": 90.0,
                "cpu_percent of 10.0.0.4": 20.0,
                "reward": 0.1,
                "time": 5.0,
            }
        ],
        4,
        0.0,
        0.0,
    )
    assert {name: value for name, value in figures.items() if "percent" in name} == {
        "cpu_percent of 10.0.0.3": 90.0,
        "cpu_percent of 10.0.0.4": 20.0,
    }
    assert figures["reward"] == 0.2
    assert "time" not in figures
