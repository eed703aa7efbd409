"""How busy the machines of a training are, where Ray's part is played; with two real nodes in tests/resources/test_two_nodes.py."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from verl_jobs.metrics import machines
from verl_jobs.metrics.machine import Reading, load
from verl_jobs.metrics.machines import Machines
from verl_jobs.trainer.entry import Reporter


def answers(
    monkeypatch: pytest.MonkeyPatch, places: dict[str, str], readings: dict[str, list[Reading]]
) -> None:
    """Nodes with workers, and what each says when it is asked, one after the other."""
    monkeypatch.setattr(machines, "_places", lambda: places)
    monkeypatch.setattr(
        Machines,
        "_ask",
        lambda _, nodes: {node: readings[node].pop(0) for node in nodes if readings[node]},
    )


def test_a_machine_is_told_by_what_it_did_since_it_was_asked_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The driver is on another, which has no workers: a head of KubeRay's."""
    answers(
        monkeypatch,
        {"n1": "10.0.0.3"},
        {"n1": [Reading(10, 100, {"memory_gib": 4.0}), Reading(70, 200, {"memory_gib": 5.0})]},
    )
    asked = Machines()
    assert asked.loads() == {"memory_gib": 4.0}
    assert asked.loads() == {"cpu_percent": 60.0, "memory_gib": 5.0}


def test_of_several_each_has_its_address_and_one_that_is_silent_is_left_out(
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


def test_without_workers_the_driver_s_own_machine_is_told() -> None:
    assert "memory_gib" in Machines().loads()


def test_a_ray_that_fails_costs_the_figures_and_not_the_step(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails() -> dict[str, str]:
        raise ConnectionError("the head is gone")

    monkeypatch.setattr(machines, "_places", fails)
    assert Machines().loads() == {} and "the head is gone" in capsys.readouterr().out


def test_how_busy_machines_are_is_told_with_the_newest_step_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A life that goes on tells all steps of those before it: nobody knows now how busy it was then."""
    told: list[dict[str, float]] = []
    rows = [{"step": step, "data": {"critic/score/mean": 0.1 * step}} for step in range(1, 4)]
    (tmp_path / "metrics-001.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
    )
    reporter = Reporter(
        SimpleNamespace(path=tmp_path),  # type: ignore[arg-type]
        SimpleNamespace(report_custom_message=told.append),  # type: ignore[arg-type]
        owned=False,
    )
    monkeypatch.setattr(reporter.machines, "loads", lambda: {"memory_gib": 4.0})
    reporter.report()
    assert [(each["step"], "memory_gib" in each) for each in told] == [
        (1, False),
        (2, False),
        (3, True),
    ]


def test_an_idle_moment_is_no_less_than_nothing() -> None:
    assert load(Reading(0.3, 1.0, {}), Reading(0.1 + 0.2 - 1e-12, 2.0, {})) == {"cpu_percent": 0.0}
