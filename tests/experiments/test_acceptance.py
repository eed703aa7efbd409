"""`ratchet gpu-acceptance`: each check fails for its own fault; no GPU, no training."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from experiments.acceptance.acceptance import accept, render
from experiments.acceptance.checks import DIFFERENCE, LOG_DIFFERENCE, MEMORY, results
from experiments.acceptance.drive import UPDATED, Events, settings_of
from experiments.acceptance.evidence import TrainingRecords, with_rates
from resources.capacity import shape_of_start
from resources.finding import Finding
from resources.run_record import RunRecord
from verl_jobs.planner.planner import estimate
from verl_jobs.planner.shapes import GIB, GPUS, Gpu

TRAINING = settings_of("cuda", Path("nowhere")).profile.training
RATE = {"share": 0.5, "tasks": 1200}
DECISION = {
    "kind": "promote",
    "comparison": {"before": RATE, "after": RATE}
    | {"difference": 0.1, "difference_low": 0.05, "difference_high": 0.15},
}


def row(step: int, **values: float) -> dict[str, Any]:
    good = {UPDATED: 1.0, DIFFERENCE: 1e-3, LOG_DIFFERENCE: 1e-3, MEMORY: 0.5}
    return {"step": step, "perf/total_num_tokens": 9000} | good | values


def good() -> TrainingRecords:
    """Return the evidence of a run on an H100 in which everything worked."""
    profile = settings_of("cuda", Path("nowhere")).profile
    shape = shape_of_start(profile)
    assert shape is not None
    record = RunRecord(
        id="chain-0001", number=1, kind="pipeline", seed=1, profile="p", why="", champion=None,
        opened_at="", minutes=14.0,
    )  # fmt: skip
    return TrainingRecords(
        device="cuda",
        findings=[Finding("driver", "590")],
        training=TRAINING,
        record=record,
        rows=[row(step) for step in range(1, TRAINING.steps + 1)],
        attempts=[range(1, 7), range(6, TRAINING.steps + 1)],
        finished=True,
        kill={"step": 6, "save": 5, "at": 0.0, "fsdp": {"FSDP_version": 2}},
        events={"started": 0.0, "checked": 5.0, "supervised": 40.0, "first_step": 100.0}
        | {"killed": 130.0, "trained": 300.0, "decided": 400.0},
        warm_up={"demonstrations": 400, "first_loss": 6.0, "last_loss": 0.8},
        load={"gpu_percent": (80.0, 30.0)},
        decision=DECISION,
        benchmarks=({"name": "humaneval", "champion": RATE, "challenger": RATE},),
        plan=estimate(shape, GPUS["H100"], TRAINING),
    )


def failed(evidence: TrainingRecords) -> list[str]:
    checks = [check for part in results(evidence) for check in part.checks]
    return [check.name for check in checks if check.state == "failed"]


def test_every_part_of_a_good_run_passes() -> None:
    assert {part.state for part in results(good())} == {"passed"}


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        ({"findings": [Finding("driver", "none", blocks=True)]}, "machine"),
        ({"rows": [row(1) | {"perf/total_num_tokens": 0}, row(20)]}, "engine"),
        ({"kill": {"step": 6, "fsdp": {"FSDP_version": 1}}}, "training"),
        ({"rows": [row(step) for step in range(1, 20)]}, "training"),
        ({"rows": [row(1), row(20, **{DIFFERENCE: 0.2})]}, "engine and trainer"),
        ({"rows": [row(1), row(20, **{LOG_DIFFERENCE: 0.2})]}, "engine and trainer"),
        ({"attempts": [range(1, 21)]}, "kill and resume"),
        ({"attempts": [range(1, 7), range(1, 21)]}, "kill and resume"),
        ({"attempts": [range(1, 7), range(9, 21)]}, "kill and resume"),
        ({"attempts": [range(1, 13), range(6, 21)]}, "kill and resume"),
        ({"decision": DECISION | {"kind": "refuse"}}, "gate"),
        ({"decision": None}, "gate"),
        ({"rows": [row(1), row(20, **{MEMORY: 9.0})]}, "memory"),
        ({"load": {"gpu_percent": (0.0, 0.0)}}, "GPU in use"),
        ({"warm_up": {"demonstrations": 1, "first_loss": 1.0, "last_loss": 2.0}}, "loss"),
    ],
)
def test_a_check_fails_for_its_fault(fault: dict[str, Any], check: str) -> None:
    assert failed(replace(good(), **fault)) == [check]


def test_an_unfinished_training_is_not_accepted() -> None:
    assert failed(replace(good(), finished=False)) == ["kill and resume", "training"]


def test_a_run_of_more_than_20_minutes_is_too_slow() -> None:
    record = good().record
    assert record is not None
    slow = replace(good(), record=record.model_copy(update={"minutes": 21.0}))
    assert failed(slow) == ["time"]


@pytest.mark.parametrize(
    ("event", "seconds", "check"),
    [("first_step", 250.0, "first step"), ("trained", 700.0, "seconds")],
)
def test_a_part_that_is_late_fails(event: str, seconds: float, check: str) -> None:
    events = good().events
    later = {
        each: at + (seconds - events[event]) * (at >= events[event]) for each, at in events.items()
    }
    assert failed(replace(good(), events=later)) == [check]


def test_a_part_whose_end_was_not_seen_has_not_run() -> None:
    events = {name: at for name, at in good().events.items() if name not in ("trained", "decided")}
    states = {part.name: part.state for part in results(replace(good(), events=events))}
    assert [name for name, state in states.items() if state == "not run"] == [
        "kill and resume", "gate", "speed"
    ]  # fmt: skip


def test_without_demonstrations_the_supervised_part_does_not_apply() -> None:
    bare = {"demonstrations": 0}
    states = {part.name: part.state for part in results(replace(good(), warm_up=bare))}
    assert states["supervised"] == "not applicable"


def test_seconds_of_all_calls_count_and_those_between_them_do_not(tmp_path: Path) -> None:
    (tmp_path / "events.json").write_text('{"seen": {"supervised": 40.0}, "ran": 500.0}')
    events = Events(tmp_path)
    assert not events.note("supervised")
    assert events.note("first_step")
    assert 500.0 <= events.seen["first_step"] < 520.0
    assert Events(tmp_path).before >= 500.0


def test_a_gpu_gets_the_rates_of_its_type() -> None:
    found = with_rates(Gpu("NVIDIA H100 80GB HBM3", 79 * GIB, 1.0, 1.0))
    assert (found.flops, found.memory) == (GPUS["H100"].flops, 79 * GIB)
    assert with_rates(Gpu("unknown", GIB, 1.0, 1.0)).flops == 1.0


@pytest.mark.slow
def test_a_machine_without_a_gpu_gets_a_page_and_trains_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    out = StringIO()
    assert accept("cuda", tmp_path / "run", Console(file=out, width=200)) == 1
    content = json.loads((tmp_path / "run" / "acceptance.json").read_text(encoding="utf-8"))
    assert not content["passed"]
    assert content["parts"][0]["state"] == "failed"
    page = (tmp_path / "run" / "index.html").read_text(encoding="utf-8")
    assert page == render(content)
    assert "Failed on cuda" in page
    assert "GPUs: none" in page
    assert not list((tmp_path / "run" / "home").glob("runs/*"))
