"""Load of the machines of a training, with a fake Ray.

tests/resources/test_two_nodes.py uses two real nodes.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from verl_jobs.metrics import machines
from verl_jobs.metrics.machine import Reading, available_bytes, load
from verl_jobs.metrics.machines import Machines
from verl_jobs.trainer.entry import Reporter
from verl_jobs.trainer.progress import ProgressWatch


def answers(
    monkeypatch: pytest.MonkeyPatch, places: dict[str, str], readings: dict[str, list[Reading]]
) -> None:
    """Replace the nodes with workers and their consecutive readings."""
    monkeypatch.setattr(machines, "_nodes", lambda: places)
    monkeypatch.setattr(
        Machines,
        "_ask",
        lambda _, nodes: {node: readings[node].pop(0) for node in nodes if readings[node]},
    )


def test_a_load_is_measured_since_the_previous_reading(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The driver runs on a head of KubeRay, which has no workers."""
    answers(
        monkeypatch,
        {"n1": "10.0.0.3"},
        {"n1": [Reading(10, 100, {"memory_gib": 4.0}), Reading(70, 200, {"memory_gib": 5.0})]},
    )
    monitor = Machines()
    assert monitor.loads() == {"memory_gib": 4.0}
    assert monitor.loads() == {"cpu_percent": 60.0, "memory_gib": 5.0}


def test_each_machine_has_its_address_and_silent_ones_are_omitted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    readings = {
        "b": [Reading(0, 0, {"gpu_percent": 80.0})],
        "a": [Reading(0, 0, {"gpu_percent": 90.0})],
        "c": [],
    }
    answers(monkeypatch, {"b": "10.0.0.4", "a": "10.0.0.3", "c": "10.0.0.5"}, readings)
    assert list(Machines().loads().items()) == [
        ("gpu_percent of 10.0.0.3", 90.0),
        ("gpu_percent of 10.0.0.4", 80.0),
    ]


def test_without_workers_the_driver_machine_is_measured() -> None:
    assert "memory_gib" in Machines().loads()


def test_a_ray_failure_loses_figures_and_not_the_step(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails() -> dict[str, str]:
        raise ConnectionError("connection lost")

    monkeypatch.setattr(machines, "_nodes", fails)
    assert Machines().loads() == {}
    assert "connection lost" in capsys.readouterr().out


def test_machine_load_is_reported_with_the_newest_step_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A resumed attempt also reports earlier steps, whose machine load is unknown."""
    messages: list[dict[str, float]] = []
    rows = [{"step": step, "data": {"critic/score/mean": 0.1 * step}} for step in range(1, 4)]
    (tmp_path / "metrics-001.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
    )
    reporter = Reporter(
        SimpleNamespace(path=tmp_path),  # type: ignore[arg-type]
        SimpleNamespace(report_custom_message=messages.append),  # type: ignore[arg-type]
        owned=False,
        watch=ProgressWatch(tmp_path, 60.0),
    )
    monkeypatch.setattr(reporter.machines, "loads", lambda: {"memory_gib": 4.0})
    reporter.report()
    assert [(each["step"], "memory_gib" in each) for each in messages] == [
        (1, False),
        (2, False),
        (3, True),
    ]


def test_a_rounding_error_gives_no_negative_load() -> None:
    assert load(Reading(0.3, 1.0, {}), Reading(0.1 + 0.2 - 1e-12, 2.0, {})) == {"cpu_percent": 0.0}


def test_memory_under_a_limit_is_what_is_left_of_it_and_dropped_files(tmp_path: Path) -> None:
    whole = available_bytes(tmp_path)  # no limit
    (tmp_path / "memory.max").write_text("max\n")
    assert available_bytes(tmp_path) == pytest.approx(whole, rel=0.2)
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("900000\n")
    (tmp_path / "memory.stat").write_text("anon 200000\ninactive_file 600000\n")
    assert available_bytes(tmp_path) == 700_000
    (tmp_path / "memory").mkdir()  # version 1 of cgroups, a further limit
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("500000\n")
    (tmp_path / "memory" / "memory.usage_in_bytes").write_text("400000\n")
    (tmp_path / "memory" / "memory.stat").write_text("inactive_file 1\ntotal_inactive_file 5\n")
    assert available_bytes(tmp_path) == 100_005
