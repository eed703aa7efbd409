"""What ends a rollout, or keeps requests out of it, beside its guardrails."""

from __future__ import annotations

from pathlib import Path

import pytest

from serving.gateway.catalog import Fault
from serving.rollout.plan import plan_of
from serving.rollout.router import RolloutRouter
from serving.rollout.view import details
from tests.serving.traffic import SETTINGS, Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_a_rollback_in_the_ledger_ends_the_rollout(site: Site) -> None:
    site.open()
    site.ledger.rollback("by hand")
    assert site.tick() == "aborted"
    assert {choice.version for choice in site.send(10)} == {1}


def test_a_plan_of_another_version_ends_the_rollout_and_the_deployed_version_answers(
    site: Site,
) -> None:
    plan = plan_of(SETTINGS, "gradual", 1).model_dump(mode="json") | {"steps": [{"part": 0.5}]}
    rollout = site.rollouts.open(1, 2, plan, why="an older version")
    router = RolloutRouter(site.rollouts, site.ledger, site.champion)
    assert {router.choose(f"user-{n}").version for n in range(100)} == {1}
    reasons = details(rollout, site.observations)["decision"]["reasons"]
    assert site.tick() == "aborted"
    [reason] = site.last().last.detail["reasons"]
    assert [reason] == reasons and "steps.0.share: Field required" in reason


@pytest.mark.parametrize(("after_s", "event"), [(-1, ""), (1, "aborted")])
def test_a_fault_of_the_challenger_counts_from_the_opening_on(
    site: Site, after_s: float, event: str
) -> None:
    at = site.open().events[0].time + after_s
    site.controller.faults = {2: Fault("no memory", at, 0.0)}
    assert site.tick() == event


def test_until_the_challenger_is_loaded_requests_are_outside_of_the_rollout(site: Site) -> None:
    site.router.loaded = lambda: {1}
    site.open()
    assert {(c.version, c.rollout) for c in site.send(100)} == {(1, "")}
    site.router.loaded = lambda: {1, 2}
    assert {c.rollout for c in site.send(10)} == {"rollout-0001"}


def test_a_version_undone_in_the_ledger_gets_no_request_even_if_it_was_deployed(site: Site) -> None:
    site.open("immediate")
    site.tick()
    site.ledger.rollback("by hand")
    site.router.refresh()
    assert {choice.version for choice in site.send(10)} == {1}
