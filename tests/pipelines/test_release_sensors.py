"""A new champion gets a release, and a rollback of the release rolls the ledger back, once."""

from __future__ import annotations

import shutil
from pathlib import Path

import dagster as dg
import pytest

from assets.deployment import deployment, follow_rollback
from pipelines.sensors.releases import champion_release, ended_release
from resources.home import Home
from resources.registry.releases import Releases
from resources.run_context import RunContext
from resources.settings import Settings
from tests.resources.ledger_entries import put


@pytest.fixture
def run_context(empty_mlflow: Path, tmp_path: Path) -> RunContext:
    profile = tmp_path / "profile.yaml"
    profile.write_text("release: {automatic: true}\n", encoding="utf-8")
    (tmp_path / "home").mkdir()
    shutil.copy(empty_mlflow, tmp_path / "home")
    context = RunContext.of(Settings(Home(tmp_path / "home"), str(profile)))
    put(context.ledger, "a", "install")
    return context


def look(sensor: dg.SensorDefinition, run_context: RunContext) -> dg.SensorResult:
    with dg.DagsterInstance.ephemeral() as instance:
        result = sensor(dg.build_sensor_context(instance=instance, resources=run_context.resources))
    assert isinstance(result, dg.SensorResult)
    return result


def materialize(run_context: RunContext) -> dg.ExecuteInProcessResult:
    return dg.materialize([deployment], resources=run_context.resources)


def test_the_first_champion_needs_no_release(run_context: RunContext) -> None:
    assert "no new champion" in str(look(champion_release, run_context).skip_reason)


def test_a_new_champion_gets_one_release(run_context: RunContext) -> None:
    put(run_context.ledger, "b")
    [request] = look(champion_release, run_context).run_requests or []
    assert request.run_key == "release-0001-opened"
    assert "release-0001 of version 2 (b) is running" in str(
        look(champion_release, run_context).skip_reason
    )
    assert len(Releases(run_context.ledger.place).all()) == 1


def test_a_newer_champion_waits_for_the_end_of_the_open_release(run_context: RunContext) -> None:
    put(run_context.ledger, "b")
    look(champion_release, run_context)
    put(run_context.ledger, "c")
    assert "release-0001 of version 2 is running" in str(
        look(champion_release, run_context).skip_reason
    )
    releases = Releases(run_context.ledger.place)
    releases.append(releases.all()[-1].last, "promoted", {"reasons": []})
    assert look(champion_release, run_context).run_requests
    assert releases.all()[-1].champion == 2


def test_a_rollback_reaches_the_ledger_once_with_its_evidence(run_context: RunContext) -> None:
    put(run_context.ledger, "b")
    look(champion_release, run_context)
    releases = Releases(run_context.ledger.place)
    releases.append(releases.all()[-1].last, "rolled_back", {"reasons": ["errors: worse."]})
    [request] = look(ended_release, run_context).run_requests or []
    assert request.run_key == "release-0001-rolled_back"
    for _ in range(2):
        assert materialize(run_context).success
    history = run_context.ledger.history()
    assert [entry.kind for entry in history] == ["install", "promote", "rollback"]
    assert history[-1].decision["reasons"][1] == "release-0001: errors: worse."
    assert "no new champion" in str(look(champion_release, run_context).skip_reason)


def test_a_promoted_release_leaves_the_ledger_as_it_is(run_context: RunContext) -> None:
    put(run_context.ledger, "b")
    look(champion_release, run_context)
    releases = Releases(run_context.ledger.place)
    releases.append(releases.all()[-1].last, "promoted", {"reasons": ["50 %: fine."]})
    [event] = materialize(run_context).asset_materializations_for_node("deployment")
    assert event.metadata["version"].value == 2
    assert len(run_context.ledger.history()) == 2


def test_no_release_opens_unless_the_profile_says_so(tmp_path: Path) -> None:
    run_context = RunContext.of(Settings(Home(tmp_path)))
    for name in "ab":
        put(run_context.ledger, name, "promote" if name == "b" else "install")
    assert "release.automatic" in str(look(champion_release, run_context).skip_reason)


def test_an_experiment_without_a_better_challenger_is_rolled_back_in_the_ledger(
    run_context: RunContext,
) -> None:
    ledger = run_context.ledger
    for name in "bc":
        put(ledger, name)
    releases = Releases(ledger.place)
    opened = releases.open(1, 2, {"strategy": "experiment"}, why="", others=[3])
    releases.append(opened.last, "rolled_back", {"reasons": ["Version 2: errors", "Version 3: no"]})
    entry = follow_rollback(ledger, releases.all())
    assert entry
    assert entry.version == 1
    assert "Version 3: no" in entry.decision["reasons"][1]
    assert follow_rollback(ledger, releases.all()) is None
