"""What ends a release, or keeps requests out of it, beside its guardrails."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from serving.gateway.catalog import LoadFault
from serving.gateway.replicas import GatewayReplicas
from serving.release.plan import plan_of
from tests.serving.traffic import SETTINGS, Site


def test_a_rollback_in_the_ledger_ends_the_release(site: Site) -> None:
    site.open()
    site.ledger.rollback("by hand")
    assert site.tick() == "aborted"
    assert {choice.version for choice in site.send(10)} == {1}


@pytest.mark.parametrize(("after_s", "event"), [(-1, ""), (1, "aborted")])
def test_a_fault_of_the_challenger_counts_from_the_opening_on(
    site: Site, tmp_path: Path, after_s: float, event: str
) -> None:
    at = site.open().events[0].time + after_s
    replicas = GatewayReplicas(tmp_path / "gateways")
    replicas.report([1], {2: LoadFault("no memory", at, 0.0)})
    site.controller.replicas = replicas
    assert site.tick() == event


def gateways(site: Site, folder: Path, failing: int, loading: int = 0, good: int = 0) -> None:
    """Let so many gateways report that they cannot load version 2, are loading it, or have it."""
    at = site.last().events[0].time + 1
    for number in range(failing + loading + good):
        fault = {2: LoadFault("no memory", at, 0.0)} if number < failing else {}
        loaded = [1, 2] if number >= failing + loading else [1]
        site.controller.replicas = GatewayReplicas(folder, f"gateway-{number}")
        site.controller.replicas.report(loaded, fault)


@pytest.mark.parametrize(
    ("failing", "loading", "good", "event"),
    [(1, 0, 2, ""), (2, 0, 1, "aborted"), (1, 1, 0, ""), (2, 0, 0, "aborted")],
)
def test_a_release_is_aborted_if_most_gateways_cannot_load_the_challenger(
    site: Site, tmp_path: Path, failing: int, loading: int, good: int, event: str
) -> None:
    site.open()
    gateways(site, tmp_path / "gateways", failing, loading, good)
    assert site.tick() == event


def test_a_gateway_that_has_ended_does_not_count(site: Site, tmp_path: Path) -> None:
    site.open()
    gateways(site, tmp_path / "gateways", failing=1, good=2)
    old = time.time() - 60
    for number in (1, 2):
        os.utime(tmp_path / "gateways" / f"gateway-{number}.json", (old, old))
    assert site.tick() == "aborted"


def test_a_gateway_without_the_challenger_is_out_of_service_where_another_has_it(
    site: Site, tmp_path: Path
) -> None:
    site.open()
    faults = {2: LoadFault("no memory", time.time(), 0.0)}
    alone = GatewayReplicas(tmp_path / "gateways", "alone")
    alone.report([1], faults)
    assert alone.out_of_service([1, 2], faults) == ""
    gateways(site, tmp_path / "gateways", failing=0, good=1)
    assert alone.out_of_service([1, 2], faults) == "no memory"
    assert alone.out_of_service([1], faults) == ""


def test_until_the_challenger_is_loaded_requests_are_outside_of_the_release(site: Site) -> None:
    site.router.loaded = lambda: {1}
    site.open()
    assert {(c.version, c.release) for c in site.send(100)} == {(1, "")}
    site.router.loaded = lambda: {1, 2}
    assert {c.release for c in site.send(10)} == {"release-0001"}


def test_a_version_undone_in_the_ledger_gets_no_request_even_if_it_was_deployed(site: Site) -> None:
    site.open("immediate")
    site.tick()
    site.ledger.rollback("by hand")
    site.router.refresh()
    assert {choice.version for choice in site.send(10)} == {1}


def test_a_champion_that_is_undone_in_the_ledger_ends_its_comparison(tmp_path: Path) -> None:
    """Else the ledger's champion would answer in its place, and be taken for it."""
    site = Site(tmp_path, versions=3)
    plan = plan_of(SETTINGS, "gradual", 1).model_dump(mode="json")
    site.releases.open(3, 1, plan, why="back to the first")
    site.router.refresh()
    site.ledger.rollback("by hand", "a reason")
    assert site.tick() == "aborted"
    assert site.last().last.detail["reasons"] == ["Version 3 was rolled back in the ledger."]
