"""Where the time of a step goes, from a real torch trace and from small examples."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from verl_jobs.config.overrides import TRACES
from verl_jobs.metrics.step_time import operations, phases, tasks

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


def test_the_time_of_an_operation_excludes_nested_ones(tmp_path: Path) -> None:
    rows = [
        ("linear", 1, 0, 100),
        ("mm", 1, 10, 60),
        ("copy", 1, 20, 5),
        ("add", 1, 80, 10),
        ("mm", 2, 0, 50),
        ("mm", 1, 200, 7),
    ]
    events = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": thread, "ts": at, "dur": took}
        for name, thread, at, took in rows
    ]
    (tmp_path / TRACES).mkdir()
    with gzip.open(tmp_path / TRACES / "a.json.gz", "wt", encoding="utf-8") as file:
        json.dump(
            {
                "traceEvents": [
                    *events,
                    {
                        "ph": "X",
                        "cat": "user_annotation",
                        "name": "update",
                        "ts": 0,
                        "dur": 1,
                        "pid": 1,
                        "tid": 1,
                    },
                ]
            },
            file,
        )
    durations = {
        duration.name: (round(duration.seconds * 1e6), duration.times)
        for duration in operations(tmp_path)
    }
    assert durations == {
        "mm": (55 + 50 + 7, 3),
        "linear": (30, 1),
        "add": (10, 1),
        "copy": (5, 1),
    }


@pytest.mark.slow
def test_a_real_trace_of_torch_is_read(tmp_path: Path) -> None:
    import torch

    (tmp_path / TRACES).mkdir()
    a = torch.randn(300, 300)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as traced:
        for _ in range(20):
            a = torch.nn.functional.relu(a @ a) / 300
    traced.export_chrome_trace(str(tmp_path / TRACES / "a.json.gz"))
    durations = {duration.name: duration for duration in operations(tmp_path)}
    known = {event.key: event.self_cpu_time_total / 1e6 for event in traced.key_averages()}
    assert durations["aten::mm"].times == 20
    assert durations["aten::mm"].seconds == pytest.approx(known["aten::mm"], rel=0.05)


def test_ray_tasks_are_summed_by_name(tmp_path: Path) -> None:
    (tmp_path / TRACES).mkdir()
    events = [
        {"ph": "X", "cat": f"task::{name}", "dur": took}
        for name, took in (("a", 2e6), ("b", 1e6), ("a", 1e6))
    ]
    (tmp_path / TRACES / "timeline.json").write_text(
        json.dumps([*events, {"ph": "X", "cat": "worker", "dur": 9e9}])
    )
    assert [(duration.name, duration.seconds, duration.times) for duration in tasks(tmp_path)] == [
        ("a", 3.0, 2),
        ("b", 1.0, 1),
    ]
