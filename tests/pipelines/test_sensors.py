"""Sensors start one run per cause, and wait during a training. tests/journeys runs the daemon."""

from __future__ import annotations

import json
import time
from pathlib import Path

import dagster as dg
import numpy as np
import pytest
from safetensors.numpy import save
from tokenizers import Tokenizer, models

from pipelines.schedules import nightly_retraining
from pipelines.sensors.checkpoints import new_checkpoint
from pipelines.sensors.retraining import champion_regression, changed_problems, wait_reason
from problems.catalogue import add_source
from resources import lease
from resources.config.profile import Automation
from tests.pipelines.home_builder import HomeBuilder, scorecard_of
from tests.pipelines.ticks import tick


def look(
    sensor: dg.SensorDefinition,
    home_builder: HomeBuilder,
    instance: dg.DagsterInstance,
    cursor: str | None = None,
) -> dg.SensorResult:
    context = dg.build_sensor_context(
        instance=instance, cursor=cursor, resources=home_builder.run_context.resources
    )
    result = sensor(context)
    assert isinstance(result, dg.SensorResult)
    return result


def put(home_builder: HomeBuilder, name: str = "my model", weight: float = 0.0) -> Path:
    folder = home_builder.run_context.home.inbox / name
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in (
        ("config.json", b"{}"),
        ("tokenizer.json", Tokenizer(models.BPE()).to_str().encode()),
        ("model.safetensors", save({"weight": np.full(2, weight)})),
    ):
        (folder / file).write_bytes(content)
    return folder


def test_an_unchanged_folder_in_the_inbox_is_evaluated_once(
    home_builder: HomeBuilder, instance: dg.DagsterInstance
) -> None:
    put(home_builder)
    first = look(new_checkpoint, home_builder, instance)
    second = look(new_checkpoint, home_builder, instance, first.cursor)
    third = look(new_checkpoint, home_builder, instance, second.cursor)
    assert not first.run_requests
    assert not third.run_requests
    [request] = second.run_requests or []
    checkpoint = home_builder.run_context.store.require("checkpoints", str(request.partition_key))
    assert request.run_key == checkpoint.content_hash
    assert request.partition_key is not None
    assert request.partition_key.startswith("my-model-")
    home_builder.run_context.store.verify(checkpoint)


def test_other_weights_under_the_same_name_are_another_checkpoint(
    home_builder: HomeBuilder, instance: dg.DagsterInstance
) -> None:
    keys = []
    cursor = None
    for weight in (0.0, 1.0):
        put(home_builder, weight=weight)
        for _ in range(2):
            seen = look(new_checkpoint, home_builder, instance, cursor)
            cursor = seen.cursor
            keys += [request.run_key for request in seen.run_requests or []]
    assert len(keys) == len(set(keys)) == 2


def test_an_invalid_checkpoint_is_reported_once(
    home_builder: HomeBuilder, instance: dg.DagsterInstance
) -> None:
    (put(home_builder) / "model.safetensors").unlink()
    first = look(new_checkpoint, home_builder, instance)
    second = look(new_checkpoint, home_builder, instance, first.cursor)
    third = look(new_checkpoint, home_builder, instance, second.cursor)
    assert not second.run_requests
    assert "no *.safetensors" in str(second.skip_reason)
    assert third.skip_reason
    assert "no *.safetensors" not in str(third.skip_reason)


def raw(home_builder: HomeBuilder, inputs: dict[str, str]) -> None:
    from artifacts.manifest import Manifest

    with home_builder.run_context.store.draft("datasets", "raw_problems") as folder:
        home_builder.run_context.store.publish(
            folder,
            Manifest(
                kind="datasets",
                name="raw_problems",
                key=json.dumps(inputs),
                content_hash="",
                inputs=inputs,
            ),
        )


def test_a_new_or_changed_source_starts_one_retraining(
    home_builder: HomeBuilder, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    assert not look(changed_problems, home_builder, instance).run_requests
    raw(home_builder, {})
    assert not look(changed_problems, home_builder, instance).run_requests
    own = tmp_path / "own.jsonl"
    own.write_text("{}\n", encoding="utf-8")
    add_source(home_builder.run_context.home.path, "own", own)
    [added] = look(changed_problems, home_builder, instance).run_requests or []
    [again] = look(changed_problems, home_builder, instance).run_requests or []
    own.write_text("{}\n{}\n", encoding="utf-8")
    [changed] = look(changed_problems, home_builder, instance).run_requests or []
    assert added.run_key == again.run_key != changed.run_key
    assert added.job_name == "full_pipeline"
    assert added.partition_key == "chain-0001"
    assert added.tags["ratchet/why"] == "problems changed: own"


@pytest.mark.parametrize(
    ("status", "hours", "reason"),
    [
        (dg.DagsterRunStatus.STARTED, 24, "is started"),
        (dg.DagsterRunStatus.CANCELED, 24, "was stopped: none is started"),
        (dg.DagsterRunStatus.FAILURE, 1, "failed. Another one waits"),
        (dg.DagsterRunStatus.FAILURE, 7, ""),
        (dg.DagsterRunStatus.SUCCESS, 0, ""),
    ],
)
def test_a_retraining_that_failed_is_asked_for_again_and_a_stopped_one_is_not(
    home_builder: HomeBuilder,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
    status: dg.DagsterRunStatus,
    hours: float,
    reason: str,
) -> None:
    raw(home_builder, {"gone": "x"})
    [first] = look(changed_problems, home_builder, instance).run_requests or []
    instance.create_run_for_job(
        dg.job(name=str(first.job_name))(lambda: None), tags=dict(first.tags), status=status
    )
    later = time.time() + hours * 3600
    monkeypatch.setattr("pipelines.sensors.retraining.time.time", lambda: later)
    result = look(changed_problems, home_builder, instance)
    if reason:
        assert reason in str(result.skip_reason)
    else:
        [second] = result.run_requests or []
        assert second.run_key != first.run_key


def test_a_retraining_that_failed_after_it_read_the_sources_is_asked_for_again(
    home_builder: HomeBuilder, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw(home_builder, {"gone": "x"})
    [first] = look(changed_problems, home_builder, instance).run_requests or []
    instance.create_run_for_job(
        dg.job(name=str(first.job_name))(lambda: None),
        tags=dict(first.tags),
        status=dg.DagsterRunStatus.FAILURE,
    )
    raw(home_builder, {})
    assert "Another one waits" in str(look(changed_problems, home_builder, instance).skip_reason)
    later = time.time() + 7 * 3600
    monkeypatch.setattr("pipelines.sensors.retraining.time.time", lambda: later)
    [second] = look(changed_problems, home_builder, instance).run_requests or []
    assert second.tags["ratchet/why"] == "problems changed: gone"
    home_builder.promoted("chain-0001")
    assert not look(changed_problems, home_builder, instance).run_requests


def test_sensors_and_schedules_wait_during_a_training(
    home_builder: HomeBuilder, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw(home_builder, {"gone": "x"})
    lease.take(home_builder.run_context.home.lease, "chain-0009")
    try:
        assert "chain-0009" in str(look(changed_problems, home_builder, instance).skip_reason)
        resources = home_builder.run_context.resources
        assert isinstance(tick(nightly_retraining, instance, resources), dg.SkipReason)
        assert "chain-0009" in str(
            wait_reason(home_builder.run_context, [], time.time(), Automation())
        )
    finally:
        lease.release(home_builder.run_context.home.lease)


def test_the_nightly_schedule_requests_the_next_pipeline_run(
    home_builder: HomeBuilder, instance: dg.DagsterInstance
) -> None:
    request = tick(nightly_retraining, instance, home_builder.run_context.resources)
    assert isinstance(request, dg.RunRequest)
    assert request.partition_key == "chain-0001"
    assert instance.has_dynamic_partition("checkpoints", "chain-0001")


def test_a_champion_is_evaluated_again_after_a_day(
    home_builder: HomeBuilder, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "no champion" in str(look(champion_regression, home_builder, instance).skip_reason)
    home_builder.promoted("chain-0001-sft")
    assert "hours ago" in str(look(champion_regression, home_builder, instance).skip_reason)
    now = time.time()
    monkeypatch.setattr("pipelines.sensors.retraining.time.time", lambda: now + 25 * 3600)
    [request] = look(champion_regression, home_builder, instance).run_requests or []
    assert request.job_name == "evaluate_checkpoint"
    assert request.tags["ratchet/kind"] == "rescore"


def rescored(home_builder: HomeBuilder, solved: int) -> None:
    champion = home_builder.promoted("chain-0001-sft", solved=60)
    home_builder.scored(
        "rescore-1",
        "rescore",
        {"champion": scorecard_of(champion, solved, 100, "a fresh draw")},
        champion,
    )


def test_a_significant_regression_starts_a_retraining(
    home_builder: HomeBuilder, instance: dg.DagsterInstance
) -> None:
    rescored(home_builder, solved=30)
    result = look(champion_regression, home_builder, instance)
    [request] = result.run_requests or []
    assert request.job_name == "full_pipeline"
    assert "30 of 100" in request.tags["ratchet/why"]
    # With this cause, the run samples more problems that resemble lost tasks.
    assert request.tags["ratchet/cause"] == "regression"
    assert len(json.loads(str(result.cursor))) == 1


def test_a_small_regression_starts_nothing(
    home_builder: HomeBuilder, instance: dg.DagsterInstance
) -> None:
    rescored(home_builder, solved=55)
    assert not look(champion_regression, home_builder, instance).run_requests


def test_one_cause_starts_one_retraining(
    home_builder: HomeBuilder, instance: dg.DagsterInstance
) -> None:
    rescored(home_builder, solved=30)
    [request] = look(champion_regression, home_builder, instance).run_requests or []
    instance.create_run_for_job(dg.job(name="full_pipeline")(lambda: None), tags=dict(request.tags))
    assert not look(champion_regression, home_builder, instance).run_requests


@pytest.mark.parametrize(
    ("hours_ago", "reason_part"),
    [
        ([], None),
        ([7.0], None),
        ([1.0], "cooldown is 6"),
        ([20.0, 10.0], "budget is 2"),
        ([30.0, 25.0], None),
    ],
)
def test_retrainings_keep_a_cooldown_and_a_daily_budget(
    home_builder: HomeBuilder, hours_ago: list[float], reason_part: str | None
) -> None:
    now = time.time()
    reason = wait_reason(
        home_builder.run_context,
        [now - hours * 3600 for hours in hours_ago],
        now,
        Automation(),
    )
    assert reason is None if reason_part is None else reason_part in str(reason)
