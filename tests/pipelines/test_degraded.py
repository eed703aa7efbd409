"""A degraded champion starts one retraining, within the cooldown and the budget of all sensors."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import replace

import dagster as dg
import pytest

from pipelines.sensors.degraded import degraded_champion
from pipelines.sensors.retraining import champion_regression
from resources.registry.releases import Releases
from resources.run_context import RunContext
from serving.gateway.observations import Observations
from tests.open_runs import open_test_run
from tests.pipelines.home_builder import HomeBuilder
from tests.pipelines.test_sensors import look, rescored
from tests.resources.ledger_entries import put
from tests.serving.traffic import ANSWER


@pytest.fixture
def run_context(home_builder: HomeBuilder) -> RunContext:
    context = home_builder.run_context
    put(context.ledger, "a", "install")
    return context


def rolled_back(run_context: RunContext) -> None:
    put(run_context.ledger, "b")
    releases = Releases(run_context.ledger.place)
    release = releases.open(1, 2, {"strategy": "gradual"}, why="a test")
    releases.append(release.last, "rolled_back", {"reasons": ["quality: worse."]})


def answered(run_context: RunContext, passed: Sequence[bool]) -> None:
    rows = [
        replace(ANSWER, response=f"r{n}", release="", unit=f"user{n}", verified=verified)
        for n, verified in enumerate(passed)
    ]
    Observations(run_context.home.observations).append(rows)


def fallen(run_context: RunContext) -> None:
    answered(run_context, [n % 10 != 0 for n in range(500)] + [n % 2 == 0 for n in range(500)])


def launch(instance: dg.DagsterInstance, request: dg.RunRequest) -> None:
    instance.create_run_for_job(
        dg.job(name="full_pipeline")(lambda: None),
        tags={**request.tags, "dagster/run_key": str(request.run_key)},
    )


def test_a_rollback_starts_one_retraining(
    run_context: RunContext, home_builder: HomeBuilder, instance: dg.DagsterInstance
) -> None:
    rolled_back(run_context)
    [request] = look(degraded_champion, home_builder, instance).run_requests or []
    assert request.job_name == "full_pipeline"
    assert "release-0001 was rolled back: quality: worse." in request.tags["ratchet/why"]
    launch(instance, request)
    assert "was started" in str(look(degraded_champion, home_builder, instance).skip_reason)


def test_a_fall_of_verified_answers_starts_a_retraining(
    run_context: RunContext, home_builder: HomeBuilder, instance: dg.DagsterInstance
) -> None:
    fallen(run_context)
    [request] = look(degraded_champion, home_builder, instance).run_requests or []
    assert "passes 50% of the requests with tests, after 90%" in request.tags["ratchet/why"]


def test_a_steady_version_starts_nothing(
    run_context: RunContext, home_builder: HomeBuilder, instance: dg.DagsterInstance
) -> None:
    draw = random.Random(1)
    answered(run_context, [draw.random() < 0.7 for _ in range(1500)])
    assert "no degradation" in str(look(degraded_champion, home_builder, instance).skip_reason)


def test_one_user_alone_shows_no_fall(
    run_context: RunContext, home_builder: HomeBuilder, instance: dg.DagsterInstance
) -> None:
    answered(run_context, [True] * 500)
    row = replace(ANSWER, response="", release="", unit="flood", verified=False)
    Observations(run_context.home.observations).append([row] * 1000)
    assert "no degradation" in str(look(degraded_champion, home_builder, instance).skip_reason)


def test_both_sensors_share_the_cooldown(
    home_builder: HomeBuilder, instance: dg.DagsterInstance
) -> None:
    rescored(home_builder, solved=30)
    [first] = look(champion_regression, home_builder, instance).run_requests or []
    tags = {"ratchet/cause": "degraded", "ratchet/why": "a test"}
    launch(instance, dg.RunRequest(run_key="degraded-release-0001", tags=tags))
    waits = look(champion_regression, home_builder, instance).skip_reason
    assert first.run_key
    assert "the cooldown is 6 hours" in str(waits)


def test_after_a_regressions_retraining_a_rollback_waits(
    run_context: RunContext, home_builder: HomeBuilder, instance: dg.DagsterInstance
) -> None:
    launch(instance, dg.RunRequest(run_key="r", tags={"ratchet/cause": "regression"}))
    time.sleep(0.01)
    rolled_back(run_context)
    waits = look(degraded_champion, home_builder, instance).skip_reason
    assert "the cooldown is 6 hours" in str(waits)


@pytest.mark.parametrize(
    ("status", "hours", "reason"),
    [
        (dg.DagsterRunStatus.CANCELED, 24, "was stopped: none is started"),
        (dg.DagsterRunStatus.FAILURE, 1, "failed. Another one waits"),
        (dg.DagsterRunStatus.FAILURE, 7, ""),
        (dg.DagsterRunStatus.SUCCESS, 24, "was started, and ended"),
    ],
)
def test_a_retraining_that_failed_is_asked_for_again_after_the_cooldown(
    home_builder: HomeBuilder,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
    status: dg.DagsterRunStatus,
    hours: float,
    reason: str,
) -> None:
    put(home_builder.run_context.ledger, "a", "install")
    rolled_back(home_builder.run_context)
    [first] = look(degraded_champion, home_builder, instance).run_requests or []
    instance.create_run_for_job(
        dg.job(name=str(first.job_name))(lambda: None), tags=dict(first.tags), status=status
    )
    open_test_run(home_builder.run_context.home.runs, str(first.partition_key)).fail("no memory")
    later = time.time() + hours * 3600
    monkeypatch.setattr("pipelines.sensors.retraining.time.time", lambda: later)
    result = look(degraded_champion, home_builder, instance)
    if reason:
        assert reason in str(result.skip_reason)
    else:
        [second] = result.run_requests or []
        assert second.run_key != first.run_key
