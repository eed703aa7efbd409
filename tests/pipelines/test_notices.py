"""People hear of what happened, once: the receiver is a real HTTP server."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.selector import InstigatorSelector
from dagster._core.remote_origin import (
    RegisteredCodeLocationOrigin,
    RemoteInstigatorOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.scheduler.instigation import (
    InstigatorState,
    InstigatorStatus,
    InstigatorType,
    ScheduleInstigatorData,
    SensorInstigatorData,
    TickData,
    TickStatus,
)
from dagster_shared.error import SerializableErrorInfo

from pipelines.health import NIGHTLY
from pipelines.notices import send_due, send_tests
from pipelines.sensors.messages import messages
from pipelines.sensors.retraining import retraining
from resources.config.notify import EVENTS
from resources.finding import kept_findings
from resources.registry.releases import Releases
from resources.run_context import PARTITION, RunContext
from resources.settings import Settings
from tests.pipelines.home_builder import HomeBuilder
from tests.receiver import Receiver, receiver
from tests.small_disk import full, small_disk

FAILURE, SKIPPED = TickStatus.FAILURE, TickStatus.SKIPPED
NOW = datetime.now(UTC)
LATER = NOW + timedelta(minutes=5)
NOTIFY = "notify.receivers=[{url: OPS}]"


@pytest.fixture
def ops(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with receiver() as opened:
        monkeypatch.setenv("OPS", opened.url)
        yield opened


class Watched:
    """A home whose receiver is known since before everything that a test does."""

    def __init__(self, home: HomeBuilder, instance: dg.DagsterInstance, *changes: str) -> None:
        self.home, self.instance = home, instance
        self.settings = Settings(home.run_context.home, "small", (NOTIFY, *changes))
        send_due(self.settings, instance, NOW - timedelta(minutes=5))

    def send(self, now: datetime = LATER) -> list[str]:
        return send_due(self.settings, self.instance, now)[1]


@pytest.fixture
def watched(home_builder: HomeBuilder, instance: dg.DagsterInstance, ops: Receiver) -> Watched:
    return Watched(home_builder, instance)


def tick(
    instance: dg.DagsterInstance,
    name: str,
    status: TickStatus,
    kind: InstigatorType,
    at: datetime,
    error: str = "it broke",
) -> None:
    """Record the tick of a sensor or schedule as the daemon does."""
    location = RegisteredCodeLocationOrigin("ratchet")
    origin = RemoteInstigatorOrigin(RemoteRepositoryOrigin(location, "r"), name)
    selector = InstigatorSelector(location_name="ratchet", repository_name="r", name=name).get_id()
    data = (
        SensorInstigatorData(min_interval=30)
        if kind is InstigatorType.SENSOR
        else ScheduleInstigatorData("0 3 * * *", NOW.timestamp())
    )
    if instance.get_instigator_state(origin.get_id(), selector) is None:
        state = InstigatorState(origin, kind, InstigatorStatus.DECLARED_IN_CODE, data)
        instance.add_instigator_state(state)
    instance.create_tick(
        TickData(
            origin.get_id(), name, kind, status, at.timestamp(),
            skip_reason="chain-0001 already trains" if status is SKIPPED else None,
            selector_id=selector,
            error=SerializableErrorInfo(error, [], None) if status is FAILURE else None,
        )
    )  # fmt: skip


def test_a_decision_is_told_once(watched: Watched, ops: Receiver) -> None:
    watched.home.promoted("a")
    watched.home.promoted("b")
    watched.send()
    watched.send()
    assert ops.titles == ["version 1 (a) is the first champion", "version 2 (b) is champion"]


def test_nothing_is_told_twice_by_a_new_process(
    watched: Watched, ops: Receiver, instance: dg.DagsterInstance
) -> None:
    watched.home.promoted("a")
    watched.send()
    Watched(watched.home, instance).send()
    assert len(ops.bodies) == 1


def test_a_failed_run_is_told_with_its_cause(
    watched: Watched, ops: Receiver, instance: dg.DagsterInstance
) -> None:
    @dg.op
    def train() -> None:
        raise RuntimeError("the reward file has no score")

    @dg.job
    def full_pipeline() -> None:
        train()

    for tags in ({}, {"dagster/will_retry": "true"}):
        full_pipeline.execute_in_process(instance=instance, raise_on_error=False, tags=tags)
    watched.send()
    watched.send()
    [body] = ops.bodies
    assert "full_pipeline" in body["title"]
    assert "the reward file has no score" in body["message"]


def test_a_failing_sensor_is_told_once_until_it_is_well(
    watched: Watched, ops: Receiver, instance: dg.DagsterInstance
) -> None:
    for minute in range(3):
        at = NOW + timedelta(minutes=minute)
        tick(instance, "stale_scores", FAILURE, InstigatorType.SENSOR, at)
        watched.send()
    assert ops.titles == ["the sensor stale_scores fails"]


def test_a_dead_code_process_is_one_message_and_not_one_of_each_sensor(
    watched: Watched, ops: Receiver, instance: dg.DagsterInstance
) -> None:
    for minute, name in enumerate(("stale_scores", "new_checkpoint", "messages")):
        at = NOW + timedelta(minutes=minute)
        error = f"dagster._core.errors.DagsterUserCodeUnreachableError: for sensor {name}"
        tick(instance, name, FAILURE, InstigatorType.SENSOR, at, error)
        watched.send()
    assert ops.titles == ["no sensor and no schedule works"]
    assert "start `ratchet ui` again" in ops.bodies[0]["message"]


def test_a_skipped_night_is_told_with_its_reason(
    watched: Watched, ops: Receiver, instance: dg.DagsterInstance
) -> None:
    tick(instance, NIGHTLY, SKIPPED, InstigatorType.SCHEDULE, NOW)
    watched.send()
    watched.send()
    [body] = ops.bodies
    assert body["title"].endswith("was skipped")
    assert "already trains" in body["message"]


def test_a_rollback_by_a_release_is_told_once(watched: Watched, ops: Receiver) -> None:
    from assets.deployment import follow_rollback

    watched.home.promoted("a")
    watched.home.promoted("b")
    ledger = watched.home.run_context.ledger
    releases = Releases(ledger.place)
    release = releases.open(1, 2, {"strategy": "canary"}, why="test")
    releases.append(release.last, "rolled_back", {"reasons": ["It fails more tests."]})
    watched.send()
    assert follow_rollback(ledger, releases.all())
    watched.send()
    assert [title for title in ops.titles if "champion" not in title] == [
        f"{release.id} was rolled back"
    ]


def test_a_retraining_is_told_with_its_reason(
    watched: Watched, ops: Receiver, instance: dg.DagsterInstance
) -> None:
    @dg.job
    def full_pipeline() -> None:
        """Nothing."""

    asked = retraining(watched.home.run_context, "problems changed: own", "problems-1", [])
    [request] = asked.run_requests or []
    tags = {**request.tags, PARTITION: str(request.partition_key)}
    full_pipeline.execute_in_process(instance=instance, tags=tags)
    watched.send()
    [body] = ops.bodies
    assert body["title"].endswith("a retraining was opened: chain-0001")
    assert body["message"] == "problems changed: own"


def test_a_disk_without_room_is_told_once_by_all_containers_of_a_home(
    home_builder: HomeBuilder,
    instance: dg.DagsterInstance,
    ops: Receiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watched = Watched(home_builder, instance, "needs.disk_gib=1e9")
    for container in ("daemon-1", "watch-1"):
        monkeypatch.setattr("socket.gethostname", lambda name=container: name)
        watched.send()
    assert ops.titles == ["disk is not well"]


def test_a_full_disk_is_told_once_although_nothing_can_be_recorded(
    tmp_path: Path, instance: dg.DagsterInstance, ops: Receiver
) -> None:
    with small_disk(tmp_path / "disk", 8) as disk:
        watched = Watched(HomeBuilder(disk / "home"), instance, "needs.disk_gib=0.001")
        with full(disk):
            assert "disk is full" in watched.send()[0]
            watched.send()
            assert ops.titles == ["disk is not well"]
            assert "0.0 GiB of free disk" in ops.bodies[0]["message"]
        assert watched.send() == []


def test_a_schedule_that_never_ran_is_missed(
    home_builder: HomeBuilder, instance: dg.DagsterInstance, ops: Receiver
) -> None:
    watched = Watched(home_builder, instance)
    tick(instance, NIGHTLY, SKIPPED, InstigatorType.SCHEDULE, NOW)
    watched.send(NOW + timedelta(hours=40))
    assert "next night is not well" in ops.titles


def test_a_damaged_ledger_is_told(watched: Watched, ops: Receiver) -> None:
    (watched.home.run_context.home.path / "promotions.db").write_bytes(b"no database" * 100)
    watched.send()
    watched.send()
    assert ops.titles == ["champion is not well"]


def test_a_receiver_that_is_down_is_told_later(watched: Watched, ops: Receiver) -> None:
    watched.home.promoted("a")
    ops.answer = 503
    assert "OPS" in watched.send()[0]
    ops.answer = 200
    assert watched.send() == []
    assert len(ops.bodies) == 1


def test_the_daemon_sends_them_too(
    watched: Watched, ops: Receiver, instance: dg.DagsterInstance
) -> None:
    watched.home.promoted("a")
    resources = RunContext.of(watched.settings).resources
    skip = messages(dg.build_sensor_context(instance=instance, resources=resources))
    assert isinstance(skip, dg.SkipReason)
    assert skip.skip_message == "sent 1 message"
    assert ops.titles == ["version 1 (a) is the first champion"]
    assert kept_findings(watched.settings.home.path) is not None


def test_a_receiver_gets_its_events_alone(
    home_builder: HomeBuilder, instance: dg.DagsterInstance, ops: Receiver
) -> None:
    only = "notify.receivers=[{url: OPS, events: [rollback]}]"
    watched = Watched(home_builder, instance, only)
    home_builder.promoted("a")
    watched.send()
    assert ops.bodies == []


def test_the_test_sends_one_message_of_each_event(watched: Watched, ops: Receiver) -> None:
    assert send_tests(watched.settings) == []
    assert ops.titles == [f"test of {event}" for event in EVENTS]
