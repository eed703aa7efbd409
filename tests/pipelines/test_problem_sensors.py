"""Sensors record new problems once: unchanged files of the inbox and new commits of the hub."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from pipelines.sensors.problems import changed_hub, new_problems
from problems.catalogue import add_source, read_sources
from problems.columns import ProblemError
from problems.reading.place import Place
from problems.sources.registry import load
from resources.problem_intake import import_problems
from tests.pipelines.home_builder import HomeBuilder
from tests.pipelines.test_sensors import look
from tests.problems.hub_server import commit, hub

ROW: dict[str, Any] = {
    "id": "a",
    "statement": "Double it.",
    "style": "call",
    "entry_point": "f",
    "tests": [{"args": [2], "expected": 4}],
}


def put(home_builder: HomeBuilder, name: str, *rows: dict[str, Any] | str) -> Path:
    file = home_builder.run_context.home.problem_inbox / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows) + "\n",
        encoding="utf-8",
    )
    return file


def looks(
    home_builder: HomeBuilder, instance: dg.DagsterInstance, count: int, cursor: str | None = None
) -> list[dg.SensorResult]:
    results = []
    for _ in range(count):
        results.append(look(new_problems, home_builder, instance, cursor))
        cursor = results[-1].cursor
    return results


def test_an_unchanged_file_in_the_inbox_becomes_a_source_once(
    home_builder: HomeBuilder, instance: dg.DagsterInstance
) -> None:
    put(home_builder, "My Problems.jsonl", ROW, "{broken")
    first, second, third = looks(home_builder, instance, 3)
    assert first.skip_reason
    assert third.skip_reason
    assert not first.asset_events
    [event] = second.asset_events or []
    assert isinstance(event, dg.AssetObservation)
    assert event.partition == "my_problems"
    assert "broken JSON" in str(event.metadata["rejected"].value)
    [(name, place)] = read_sources(home_builder.run_context.home.path).items()
    assert name == "my_problems"
    assert place.path
    assert place.path.is_relative_to(home_builder.run_context.home.problem_files.resolve())
    assert [problem.problem_id for problem in load(name, place).problems] == ["my_problems/a"]


def test_a_growing_file_is_not_read(
    home_builder: HomeBuilder, instance: dg.DagsterInstance
) -> None:
    cursor = None
    for count in range(1, 4):
        put(home_builder, "mine.jsonl", *(ROW | {"id": str(number)} for number in range(count)))
        cursor = look(new_problems, home_builder, instance, cursor).cursor
    assert read_sources(home_builder.run_context.home.path) == {}


def test_changed_content_becomes_a_second_version_of_a_source(
    home_builder: HomeBuilder, instance: dg.DagsterInstance
) -> None:
    put(home_builder, "mine.jsonl", ROW)
    second = looks(home_builder, instance, 2)[1]
    before = read_sources(home_builder.run_context.home.path)["mine"]
    put(home_builder, "mine.jsonl", ROW, ROW | {"id": "b"})
    looks(home_builder, instance, 2, second.cursor)
    after = read_sources(home_builder.run_context.home.path)["mine"]
    assert before.content != after.content
    assert len(load("mine", before).problems) == 1
    assert len(load("mine", after).problems) == 2


def test_two_files_for_one_source_are_refused(
    home_builder: HomeBuilder, instance: dg.DagsterInstance
) -> None:
    first, second = (
        put(home_builder, "mine.json", json.dumps([ROW])),
        put(home_builder, "Mine.jsonl", ROW | {"id": "b"}),
    )
    import_problems(home_builder.run_context.home, first)
    with pytest.raises(ProblemError, match=r"mine\b.*mine\.json"):
        import_problems(home_builder.run_context.home, second)
    assert [
        problem.problem_id
        for problem in load(
            "mine", read_sources(home_builder.run_context.home.path)["mine"]
        ).problems
    ] == ["mine/a"]
    first.unlink()
    assert import_problems(home_builder.run_context.home, second).source == "mine"


def test_equal_content_is_no_new_source(
    home_builder: HomeBuilder, instance: dg.DagsterInstance
) -> None:
    put(home_builder, "mine.jsonl", ROW)
    second = looks(home_builder, instance, 2)[1]
    content = read_sources(home_builder.run_context.home.path)["mine"].content
    put(home_builder, "mine.jsonl", ROW).touch()
    again = looks(home_builder, instance, 2, second.cursor)[1]
    assert "already has this content" in str(again.skip_reason)
    assert read_sources(home_builder.run_context.home.path)["mine"].content == content


@pytest.mark.parametrize(
    ("name", "row", "reason"),
    [
        ("mine.jsonl", "{broken", "line 1: broken JSON"),
        ("mine.parquet", "half", "not a complete parquet file"),
        ("mine.xml", "a,b", "ending .xml is unknown"),
        ("mine.csv", "a,b", "the file is empty"),
        ("mine.jsonl", "", "the file is empty"),
        ("humaneval.jsonl", ROW, "key 'task_id' is missing"),
        ("123.jsonl", ROW, "the name has no letters"),
    ],
)
def test_a_bad_file_is_reported_once(
    home_builder: HomeBuilder, instance: dg.DagsterInstance, name: str, row: Any, reason: str
) -> None:
    put(home_builder, name, row)
    first, second, third = looks(home_builder, instance, 3)
    assert reason in str(second.skip_reason)
    assert reason not in str(first.skip_reason) + str(third.skip_reason)
    assert read_sources(home_builder.run_context.home.path) == {}


def test_a_file_with_an_upstream_name_becomes_that_source(
    home_builder: HomeBuilder, instance: dg.DagsterInstance
) -> None:
    put(
        home_builder,
        "mbpp.jsonl",
        {
            "task_id": 11,
            "text": "Add one.",
            "code": "def f(x):\n    return x + 1",
            "test_list": ["assert f(1) == 2"],
        },
    )
    looks(home_builder, instance, 2)
    [problem] = load("mbpp", read_sources(home_builder.run_context.home.path)["mbpp"]).problems
    assert problem.problem_id == "mbpp/11"
    assert problem.gated


def test_dagster_records_the_new_source(
    home_builder: HomeBuilder, instance: dg.DagsterInstance
) -> None:
    put(home_builder, "mine.jsonl", ROW)
    cursor = None
    for _ in range(2):
        context = dg.build_sensor_context(
            instance=instance, cursor=cursor, resources=home_builder.run_context.resources
        )
        data = new_problems.evaluate_tick(context)
        cursor = data.cursor
    assert [event.partition for event in data.asset_events] == ["mine"]
    assert "mine" in str(data.skip_message)


@pytest.fixture
def endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Set the endpoint in the client, which reads HF_ENDPOINT when it is imported."""
    import huggingface_hub.constants

    def at(address: str) -> None:
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", address)

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    return at


def test_a_hub_commit_is_recorded_once_at_a_limited_rate(
    home_builder: HomeBuilder, instance: dg.DagsterInstance, tmp_path: Path, endpoint: Any
) -> None:
    first = commit(tmp_path / "hub", "me/mine", {"rows.jsonl": b"1"})
    add_source(home_builder.run_context.home.path, "mine", Place(hub="me/mine", commit=first))
    add_source(
        home_builder.run_context.home.path,
        "fixed",
        Place(hub="me/mine", revision=first, commit=first),
    )
    with hub(tmp_path / "hub") as address:
        endpoint(address)
        same = look(changed_hub, home_builder, instance)
        second = commit(tmp_path / "hub", "me/mine", {"rows.jsonl": b"2"})
        soon = look(changed_hub, home_builder, instance, same.cursor)
        later = look(changed_hub, home_builder, instance, "0")
    assert same.skip_reason
    assert not same.asset_events
    assert "6" in str(soon.skip_reason)
    assert not soon.asset_events
    assert soon.cursor == same.cursor
    assert [event.partition for event in later.asset_events or []] == ["mine"]
    assert {
        name: place.commit
        for name, place in read_sources(home_builder.run_context.home.path).items()
    } == {
        "mine": second,
        "fixed": first,
    }


def test_an_unreachable_hub_changes_nothing(
    home_builder: HomeBuilder, instance: dg.DagsterInstance, endpoint: Any
) -> None:
    add_source(
        home_builder.run_context.home.path, "mine", place := Place(hub="me/mine", commit="a" * 40)
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    endpoint(f"http://127.0.0.1:{port}")
    result = look(changed_hub, home_builder, instance)
    assert "hub" in str(result.skip_reason)
    assert not result.asset_events
    assert float(str(result.cursor)) > 0
    assert read_sources(home_builder.run_context.home.path) == {"mine": place}


def test_without_a_hub_source_the_hub_is_not_requested(
    home_builder: HomeBuilder, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    add_source(home_builder.run_context.home.path, "mine", tmp_path)
    assert look(changed_hub, home_builder, instance).skip_reason
