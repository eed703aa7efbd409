"""What starts by itself starts once for a cause, and waits while somebody trains. The daemon's part is tried in tests/journeys."""

from __future__ import annotations

import json
import time
from pathlib import Path

import dagster as dg
import pytest

from pipelines.schedules import nightly_retraining
from pipelines.sensors.champion import (
    champion_regression,
    changed_problems,
    held_back,
    new_checkpoint,
)
from problems.catalogue import add_source
from resources import lease
from resources.config.profile import Automation
from tests.pipelines.house import House, card


def look(
    sensor: dg.SensorDefinition,
    house: House,
    instance: dg.DagsterInstance,
    cursor: str | None = None,
) -> dg.SensorResult:
    context = dg.build_sensor_context(
        instance=instance, cursor=cursor, resources={"workshop": house.workshop}
    )
    result = sensor(context)
    assert isinstance(result, dg.SensorResult)
    return result


def put(house: House, name: str = "my model", weights: bytes = b"weights") -> Path:
    folder = house.workshop.home.inbox / name
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in (
        ("config.json", b"{}"),
        ("tokenizer.json", b"{}"),
        ("model.safetensors", weights),
    ):
        (folder / file).write_bytes(content)
    return folder


def test_a_folder_in_the_inbox_is_scored_when_it_has_been_still_for_one_look_and_only_once(
    house: House, instance: dg.DagsterInstance
) -> None:
    put(house)
    first = look(new_checkpoint, house, instance)
    second = look(new_checkpoint, house, instance, first.cursor)
    third = look(new_checkpoint, house, instance, second.cursor)
    assert not first.run_requests and not third.run_requests
    [request] = second.run_requests or []
    made = house.workshop.store.require("checkpoints", str(request.partition_key))
    assert (
        request.run_key == made.content_hash
        and request.partition_key is not None
        and request.partition_key.startswith("my-model-")
    )
    house.workshop.store.verify(made)


def test_other_weights_under_the_same_name_are_another_checkpoint(
    house: House, instance: dg.DagsterInstance
) -> None:
    keys = []
    cursor = None
    for weights in (b"weights", b"other weights"):
        put(house, weights=weights)
        for _ in range(2):
            seen = look(new_checkpoint, house, instance, cursor)
            cursor = seen.cursor
            keys += [request.run_key for request in seen.run_requests or []]
    assert len(keys) == len(set(keys)) == 2


def test_a_folder_that_is_no_checkpoint_is_named_once_and_scored_never(
    house: House, instance: dg.DagsterInstance
) -> None:
    (put(house) / "model.safetensors").unlink()
    first = look(new_checkpoint, house, instance)
    second = look(new_checkpoint, house, instance, first.cursor)
    third = look(new_checkpoint, house, instance, second.cursor)
    assert not second.run_requests and "no *.safetensors" in str(second.skip_reason)
    assert "none of them new" in str(third.skip_reason)


def raw(house: House, inputs: dict[str, str]) -> None:
    from artifacts.manifest import Manifest

    with house.workshop.store.draft("datasets", "raw_problems") as folder:
        house.workshop.store.publish(
            folder,
            Manifest(
                kind="datasets",
                name="raw_problems",
                key=json.dumps(inputs),
                content_hash="x",
                inputs=inputs,
            ),
        )


def test_a_source_that_was_added_or_changed_starts_one_retraining(
    house: House, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    assert not look(changed_problems, house, instance).run_requests
    raw(house, {})
    assert not look(changed_problems, house, instance).run_requests
    own = tmp_path / "own.jsonl"
    own.write_text("{}\n", encoding="utf-8")
    add_source(house.workshop.home.path, "own", own)
    [added] = look(changed_problems, house, instance).run_requests or []
    [again] = look(changed_problems, house, instance).run_requests or []
    own.write_text("{}\n{}\n", encoding="utf-8")
    [changed] = look(changed_problems, house, instance).run_requests or []
    assert added.run_key == again.run_key != changed.run_key
    assert (
        added.job_name == "full_chain"
        and added.partition_key == "chain-0001"
        and added.tags["ratchet/why"] == "problems changed: own"
    )


def test_sensors_and_schedule_wait_while_somebody_trains(
    house: House, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw(house, {"gone": "x"})
    lease.take(house.workshop.home.lease, "chain-0009")
    try:
        assert "chain-0009" in str(look(changed_problems, house, instance).skip_reason)
        context = dg.build_schedule_context(
            instance=instance, resources={"workshop": house.workshop}
        )
        assert isinstance(nightly_retraining(context), dg.SkipReason)
        assert "chain-0009" in str(held_back(house.workshop, [], time.time(), Automation()))
    finally:
        lease.give_back(house.workshop.home.lease)


def test_the_night_asks_for_the_next_chain(house: House, instance: dg.DagsterInstance) -> None:
    request = nightly_retraining(
        dg.build_schedule_context(instance=instance, resources={"workshop": house.workshop})
    )
    assert isinstance(request, dg.RunRequest) and request.partition_key == "chain-0001"
    assert instance.has_dynamic_partition("checkpoints", "chain-0001")


def test_a_champion_is_scored_again_when_its_score_is_a_day_old(
    house: House, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "no champion" in str(look(champion_regression, house, instance).skip_reason)
    house.promoted("chain-0001-sft")
    assert "hours ago" in str(look(champion_regression, house, instance).skip_reason)
    now = time.time()
    monkeypatch.setattr("pipelines.sensors.champion.time.time", lambda: now + 25 * 3600)
    [request] = look(champion_regression, house, instance).run_requests or []
    assert request.job_name == "evaluate_checkpoint" and request.tags["ratchet/kind"] == "rescore"


def fallen(house: House, solved: int) -> None:
    champion = house.promoted("chain-0001-sft", solved=60)
    house.scored(
        "rescore-1", "rescore", {"champion": card(champion, solved, 100, "a fresh draw")}, champion
    )


def test_a_significant_fall_starts_a_retraining_and_chance_does_not(
    house: House, instance: dg.DagsterInstance
) -> None:
    fallen(house, solved=30)
    result = look(champion_regression, house, instance)
    [request] = result.run_requests or []
    assert (
        request.job_name == "full_chain"
        and "a fall that chance explains" in request.tags["ratchet/why"]
    )
    assert (
        request.tags["ratchet/cause"] == "regression"
    )  # the chain draws more of what resembles lost tasks
    assert len(json.loads(str(result.cursor))) == 1


def test_a_small_fall_is_chance(house: House, instance: dg.DagsterInstance) -> None:
    fallen(house, solved=55)
    assert not look(champion_regression, house, instance).run_requests


def test_one_cause_starts_one_retraining(house: House, instance: dg.DagsterInstance) -> None:
    fallen(house, solved=30)
    [request] = look(champion_regression, house, instance).run_requests or []
    instance.create_run_for_job(
        dg.job(name="full_chain")(lambda: None), tags={"dagster/run_key": str(request.run_key)}
    )
    assert not look(champion_regression, house, instance).run_requests


@pytest.mark.parametrize(
    ("asked_hours_ago", "said"),
    [
        ([], None),
        ([7.0], None),
        ([1.0], "the cooldown is 6"),
        ([20.0, 10.0], "the budget is 2"),
        ([30.0, 25.0], None),
    ],
)
def test_retrainings_keep_a_cooldown_and_a_daily_budget(
    house: House, asked_hours_ago: list[float], said: str | None
) -> None:
    now = time.time()
    reason = held_back(
        house.workshop, [now - hours * 3600 for hours in asked_hours_ago], now, Automation()
    )
    assert reason is None if said is None else said in str(reason)
