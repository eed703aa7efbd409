"""`ratchet health` says whether a home is well, for cron and for probes."""

from __future__ import annotations

import json
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.remote_origin import (
    RegisteredCodeLocationOrigin,
    RemoteInstigatorOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.scheduler.instigation import (
    InstigatorState,
    InstigatorStatus,
    SensorInstigatorData,
)
from dagster._daemon.types import DaemonHeartbeat

from artifacts.folder import Folder
from pipelines.health import NIGHTLY, findings
from pipelines.metrics import HomeCollector
from resources import lease
from resources.backup.back_up import back_up
from resources.finding import Finding
from resources.settings import Settings
from tests.cli.conftest import Called
from tests.open_runs import open_test_run
from tests.pipelines.home_builder import HomeBuilder

NOW = datetime.now(UTC)
AWAY = "storage.ledger=postgresql://ratchet@127.0.0.1:1/ratchet"  # nothing listens there


def found(
    home_builder: HomeBuilder, instance: dg.DagsterInstance, *changes: str, now: datetime = NOW
) -> dict[str, Finding]:
    settings = Settings(home_builder.run_context.home, "small", changes)
    return {each.part: each for each in findings(settings, instance, now)}


def night(instance: dg.DagsterInstance, *, fails: bool = False) -> None:
    """Run a job as the nightly schedule does."""

    @dg.op
    def train() -> None:
        if fails:
            raise RuntimeError("no")

    @dg.job
    def job() -> None:
        train()

    job.execute_in_process(
        instance=instance, raise_on_error=False, tags={"dagster/schedule_name": NIGHTLY}
    )


def beat(instance: dg.DagsterInstance, seconds: float) -> None:
    instance.add_daemon_heartbeat(DaemonHeartbeat(NOW.timestamp() - seconds, "SENSOR", "id", []))


def sensor_ran(instance: dg.DagsterInstance, seconds: float, *, name: str = "retrain") -> None:
    """Record the state of a sensor that the daemon keeps, whose last tick began some time ago."""
    location = RemoteRepositoryOrigin(
        RegisteredCodeLocationOrigin("pipelines.definitions"), "__repository__"
    )
    data = SensorInstigatorData(
        min_interval=30, last_tick_start_timestamp=NOW.timestamp() - seconds
    )
    instance.add_instigator_state(
        InstigatorState(
            RemoteInstigatorOrigin(location, name),
            InstigatorType.SENSOR,
            InstigatorStatus.DECLARED_IN_CODE,
            data,
        )
    )


def test_a_home_with_a_whole_champion_is_well(
    home_builder: HomeBuilder, instance: dg.DagsterInstance
) -> None:
    home_builder.promoted("a")
    parts = found(home_builder, instance)
    assert parts["champion"].found == "version 1 (a), whole"
    assert not [part for part, finding in parts.items() if finding.blocks]


def test_a_changed_champion_is_not_well(
    home_builder: HomeBuilder, instance: dg.DagsterInstance
) -> None:
    champion = home_builder.promoted("a")
    (champion.path / "model.safetensors").write_text("other", encoding="utf-8")
    finding = found(home_builder, instance)["champion"]
    assert finding.blocks
    assert "model.safetensors: was changed" in finding.found
    assert "backup" in finding.fix


def test_a_database_that_is_away_is_one_finding_and_costs_no_other(
    home_builder: HomeBuilder, instance: dg.DagsterInstance
) -> None:
    parts = found(home_builder, instance, AWAY, "needs.disk_gib=1e9")
    assert [part for part, finding in parts.items() if finding.blocks] == ["champion", "disk"]
    assert "the ledger postgresql://" in parts["champion"].found
    assert parts["training"].found.startswith("unknown")


def test_a_damaged_database_of_the_runs_is_named_and_costs_no_other_finding(
    home_builder: HomeBuilder, instance: dg.DagsterInstance
) -> None:
    home_builder.promoted("a")
    home_builder.run_context.home.runs.place.write_bytes(b"no database")  # type: ignore[union-attr]
    parts = found(home_builder, instance)
    assert parts["champion"].found == "version 1 (a), whole"
    assert parts["training"].blocks
    assert "records.db cannot be used" in parts["training"].found


@pytest.mark.slow
def test_a_scrape_waits_once_for_a_database_that_does_not_answer(
    home_builder: HomeBuilder, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.metrics.PATIENCE_S", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"storage.ledger=postgresql://ratchet@127.0.0.1:{silent.getsockname()[1]}/ratchet"
        settings = Settings(home_builder.run_context.home, "small", (url,))
        assert HomeCollector(settings, instance).collect()
        silent.accept()[0].close()
        silent.setblocking(False)
        with pytest.raises(BlockingIOError):  # nobody connected again
            silent.accept()


def test_the_metrics_of_the_host_stay_while_the_database_is_away(
    home_builder: HomeBuilder, instance: dg.DagsterInstance
) -> None:
    settings = Settings(home_builder.run_context.home, "small", (AWAY,))
    families = {each.name: each for each in HomeCollector(settings, instance).collect()}
    unwell = {each.labels["part"]: each.value for each in families["ratchet_unwell"].samples}
    assert unwell["champion"] == 1
    assert "ratchet_disk_free_bytes" in families
    assert "ratchet_lease_age_seconds" not in families


def test_the_status_is_shown_while_the_database_is_away(
    ratchet: Called, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_SET", AWAY)
    code, output, errors = ratchet(tmp_path, "status")
    assert code == 2
    assert "training  unknown" in output
    assert "the lease postgresql://" in errors


@pytest.fixture
def without_dagster(ratchet: Called, monkeypatch: pytest.MonkeyPatch) -> Called:
    """Let Dagster's database be one where nothing listens."""
    place = {"hostname": "127.0.0.1", "port": 1}
    monkeypatch.setenv("RATCHET_SET", f"orchestration.postgres={json.dumps(place)}")
    monkeypatch.setenv("DAGSTER_POSTGRES_PASSWORD", "secret")
    monkeypatch.delattr("os.execve")  # `ratchet ui` would replace this process
    return ratchet


def test_without_dagsters_database_the_other_parts_are_found(
    without_dagster: Called, tmp_path: Path
) -> None:
    code, output, _ = without_dagster(tmp_path, "health", "--json")
    parts = {each["part"]: each for each in json.loads(output)}
    assert (code, parts["champion"]["found"], parts["disk"]["blocks"]) == (1, "none yet", False)
    assert "Dagster's records on 127.0.0.1:1/dagster" in parts["daemon"]["found"]


@pytest.mark.parametrize("command", ["gc", "metrics", "ui"])
def test_without_dagsters_database_a_command_says_so_in_a_line(
    without_dagster: Called, tmp_path: Path, command: str
) -> None:
    code, _, errors = without_dagster(tmp_path, command)
    assert (code, len(errors.splitlines())) == (2, 1)
    assert "Dagster's records on 127.0.0.1:1/dagster" in errors


def test_sensors_that_a_living_daemon_no_longer_runs_are_not_well(
    home_builder: HomeBuilder, instance: dg.DagsterInstance
) -> None:
    beat(instance, 20)
    sensor_ran(instance, 1200, name="deleted since")
    sensor_ran(instance, 400)
    finding = found(home_builder, instance)["daemon"]
    assert finding.blocks
    assert finding.found == "the last sensor reported 6 min ago"


def test_sensors_that_ran_lately_are_well(
    home_builder: HomeBuilder, instance: dg.DagsterInstance
) -> None:
    beat(instance, 20)
    sensor_ran(instance, 1200, name="deleted since")
    sensor_ran(instance, 40)
    assert not found(home_builder, instance)["daemon"].blocks


def test_a_disk_without_room_for_a_run_is_not_well(
    home_builder: HomeBuilder, instance: dg.DagsterInstance
) -> None:
    finding = found(home_builder, instance, "needs.disk_gib=1e9")["disk"]
    assert finding.blocks
    assert "ratchet gc" in finding.fix


@pytest.mark.parametrize(("seconds", "blocks"), [(20.0, False), (3600.0, True)])
def test_a_silent_daemon_is_not_well(
    home_builder: HomeBuilder, instance: dg.DagsterInstance, seconds: float, blocks: bool
) -> None:
    beat(instance, seconds)
    assert found(home_builder, instance)["daemon"].blocks is blocks


@pytest.mark.parametrize("retrain", ["true", "false"])
def test_a_daemon_is_missed_where_the_profile_retrains(
    home_builder: HomeBuilder, instance: dg.DagsterInstance, retrain: str
) -> None:
    parts = found(home_builder, instance, f"automation.retrain={retrain}")
    assert parts["daemon"].blocks is (retrain == "true")


def test_a_failed_night_is_not_well(
    home_builder: HomeBuilder, instance: dg.DagsterInstance
) -> None:
    night(instance, fails=True)
    finding = found(home_builder, instance, "automation.retrain=true")["last night"]
    assert finding.blocks
    assert "failure" in finding.found


@pytest.mark.parametrize(("hours", "blocks"), [(30, False), (40, True)])
def test_a_night_that_did_not_happen_is_missed(
    home_builder: HomeBuilder, instance: dg.DagsterInstance, hours: int, blocks: bool
) -> None:
    night(instance)
    now = NOW + timedelta(hours=hours)
    finding = found(home_builder, instance, "automation.retrain=true", now=now)["next night"]
    assert finding.blocks is blocks


@pytest.mark.parametrize(("hours", "blocks"), [(1, False), (5, True)])
def test_a_training_that_changes_no_file_is_hung(
    home_builder: HomeBuilder, instance: dg.DagsterInstance, hours: int, blocks: bool
) -> None:
    home = home_builder.run_context.home
    open_test_run(home.runs, "chain-0001").folder.mkdir(parents=True, exist_ok=True)
    lease.take(home.lease, "chain-0001")
    finding = found(home_builder, instance, now=NOW + timedelta(hours=hours))["training"]
    lease.release(home.lease)
    assert finding.blocks is blocks


def test_status_shows_the_daemon_as_it_was_checked_last(
    home_builder: HomeBuilder, ratchet: Called
) -> None:
    home = home_builder.run_context.home
    assert "not checked yet" in ratchet(home.path, "status")[1]
    ratchet(home.path, "health")
    [daemon] = json.loads(ratchet(home.path, "status", "--json")[1])["daemon"]
    assert daemon.startswith("none has run in this home, as of ")


def test_no_night_is_missed_while_the_schedule_is_off(
    home_builder: HomeBuilder, instance: dg.DagsterInstance
) -> None:
    night(instance, fails=True)
    assert not found(home_builder, instance)["last night"].blocks


def test_the_exit_code_is_the_answer(home_builder: HomeBuilder, ratchet: Called) -> None:
    home = home_builder.run_context.home
    assert ratchet(home.path, "health")[0] == 0
    champion = home_builder.promoted("a")
    (champion.path / "model.safetensors").unlink()
    code, output, _ = ratchet(home.path, "health", "--json")
    assert code == 1
    assert json.loads(output)[0]["blocks"]


@pytest.mark.parametrize(("hours", "blocks"), [(1, False), (30, True)])
def test_a_missing_backup_is_not_well(
    home_builder: HomeBuilder,
    instance: dg.DagsterInstance,
    tmp_path: Path,
    hours: int,
    blocks: bool,
) -> None:
    change = f"storage.backup={tmp_path / 'backups'}"
    assert found(home_builder, instance, change)["backup"].blocks
    settings = Settings(home_builder.run_context.home, "small")
    back_up(settings, Folder(str(tmp_path / "backups")), 30)
    now = datetime.now(UTC) + timedelta(hours=hours)
    assert found(home_builder, instance, change, now=now)["backup"].blocks is blocks


def test_a_place_of_backups_that_cannot_be_reached_is_named(
    home_builder: HomeBuilder, instance: dg.DagsterInstance
) -> None:
    finding = found(home_builder, instance, "storage.backup=nosuch://place")["backup"]
    assert finding.blocks
    assert finding.found.startswith("nosuch://place: ")


def test_no_backup_is_missed_where_none_is_configured(
    home_builder: HomeBuilder, instance: dg.DagsterInstance
) -> None:
    assert "backup" not in found(home_builder, instance)
