"""Figures of a training: last step, curves, remaining time and machine load."""

from __future__ import annotations

import time

import pytest

from evaluation.reports.live_curves import MAX_POINTS, panels
from verl_jobs.metrics import machine
from verl_jobs.metrics.figures import last_figures, seconds_left, seconds_trained, series

HISTORY = [
    {"step": 0, "val-core/validation/acc/mean@1": 0.2},
    {
        "step": 1,
        "critic/score/mean": 0.1,
        "actor/ppo_kl": -0.01,
        "timing_s/step": 4.0,
        "response_length/mean": 50.0,
    },
    {
        "step": 2,
        "critic/score/mean": 0.3,
        "actor/kl_loss": 0.02,
        "actor/ppo_kl": 0.0,
        "timing_s/step": 2.0,
        "perf/throughput": 900.0,
    },
]


def test_the_last_figures_are_those_measured_in_the_last_step() -> None:
    assert last_figures(HISTORY) == {
        "reward": 0.3,
        "KL": 0.02,
        "tokens_per_second": 900.0,
        "seconds_a_step": 2.0,
    }


def test_there_are_no_figures_before_the_first_step() -> None:
    assert last_figures(HISTORY[:1]) == {}
    assert seconds_left(HISTORY[:1], 20) is None


def test_kl_is_to_the_start_policy_and_never_of_the_update() -> None:
    assert series(HISTORY, "KL") == [(2, 0.02)]


def test_remaining_time_assumes_the_speed_of_the_last_steps() -> None:
    assert seconds_left(HISTORY, 10) == pytest.approx(8 * 3.0)
    assert seconds_left(HISTORY, 2) == 0
    assert seconds_trained(HISTORY) == 6.0


def test_a_gpu_that_does_not_respond_is_left_out() -> None:
    assert machine.gpus("40, 2048\n60, 1024\n[N/A], 5\n") == {
        "gpu_percent": 50.0,
        "gpu_memory_gib": 3.0,
    }
    assert machine.gpus("") == {}


def test_the_machine_reports_its_load_and_memory() -> None:
    before = machine.reading()
    time.sleep(0.1)
    load = machine.load(before, machine.reading())
    assert 0 <= load["cpu_percent"] <= 100
    assert load["memory_gib"] > 0
    assert set(load) <= set(machine.MEASURED)
    assert "cpu_percent" not in machine.load(None, before)


def test_a_chart_of_many_steps_is_small_and_complete() -> None:
    chart = panels(
        {"reward": [(step, step / 1000) for step in range(1000)], "KL": [], "a & b": [(1, 2.0)]}
    )
    assert chart.count(",") < 2 * MAX_POINTS + 20
    assert ">0.999</text>" in chart
    assert "a &amp; b" in chart
    assert "KL" not in chart
