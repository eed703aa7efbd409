"""Experiments with several challengers: allocation, decisions for each, and their record."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from resources.registry.releases import NoRelease, deployed
from serving.release.arms import Arms, FirstRequests
from serving.release.controller import Controller
from serving.release.plan import recorded_plan
from serving.release.router import ReleaseRouter
from serving.release.view import details
from tests.serving.traffic import SETTINGS, Site, open_release


def later() -> float:
    """Return a time at which every step has lasted long enough."""
    return time.time() + 60


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """Return a home with a champion and three challengers."""
    site = Site(tmp_path, versions=4)
    site.controller.clock = later
    return site


def run(site: Site, passes: tuple[float, ...], errors: tuple[float, ...] = (0.0,) * 4) -> None:
    """Send requests until the experiment ends. A new controller looks at once: one that has read
    all observations without a result waits ten times as long as that took.
    """
    for _ in range(12):
        site.send(2000, errors, passes)
        site.controller = Controller(site.releases, site.ledger, site.observations)
        site.controller.clock = later
        site.tick()
        if not site.last().open:
            return
    raise AssertionError("the experiment did not end")


def test_arms_begin_with_equal_shares(site: Site) -> None:
    site.experiment()
    choices = site.send(2000)
    assert {choice.share for choice in choices} == {0.25}
    for version in (1, 2, 3, 4):
        assert sum(c.version == version for c in choices) == pytest.approx(500, abs=100)
    assert site.router.versions() == [1, 2, 3, 4]


def test_the_best_challenger_is_promoted(site: Site) -> None:
    site.experiment()
    run(site, (0.3, 0.3, 0.6, 0.3))
    last = site.last()
    assert (last.state, last.challenger, deployed([last])) == ("promoted", 3, 3)
    assert last.last.detail["reasons"][0].startswith("Version 3: verified answers: difference +")
    assert {choice.version for choice in site.send(50)} == {3}


def test_a_harmful_challenger_is_dropped_and_the_others_continue(site: Site) -> None:
    site.experiment()
    while not (dropped := site.last().last.detail.get("dropped")):
        site.send(100, (0.0, 0.5, 0.0, 0.0))
        site.tick()
    assert dropped == [2]
    assert site.last().open
    assert site.last().last.detail["reasons"][0].startswith("Version 2: errors: worse than")
    choices = site.send(900)
    assert {choice.version for choice in choices} == {1, 3, 4}
    assert site.router.versions() == [1, 3, 4]


def test_a_paused_experiment_still_drops_a_harmful_challenger_and_stays_paused(site: Site) -> None:
    site.releases.append(site.experiment().last, "paused", {"reasons": ["a holiday"]})
    while not site.last().last.detail.get("dropped"):
        site.send(100, (0.0, 0.5, 0.0, 0.0), (0.3, 0.3, 0.9, 0.3))
        site.tick()
    assert site.last().state == "paused"
    assert site.last().step == 1
    site.send(2000, passes=(0.3, 0.3, 0.9, 0.3))
    assert site.tick() == ""


@pytest.mark.slow
def test_without_a_better_challenger_the_champion_stays_with_reasons_for_each(site: Site) -> None:
    site.experiment()
    run(site, (0.8, 0.3, 0.4, 0.8), (0.0, 0.0, 0.0, 0.5))
    last = site.last()
    assert last.state == "rolled_back"
    assert deployed([last]) == 1
    for version in (2, 3, 4):
        assert any(r.startswith(f"Version {version}: ") for r in last.last.detail["reasons"])


def test_an_equal_challenger_is_dropped_after_its_pairs(site: Site) -> None:
    site.experiment(SETTINGS.model_copy(update={"max_pairs": 100}))
    run(site, (0.5,) * 4)
    assert site.last().state == "rolled_back"
    assert "No gain is shown in" in " ".join(site.last().last.detail["reasons"])


def test_the_shares_of_an_experiment_stay_equal(site: Site) -> None:
    site.experiment(SETTINGS.model_copy(update={"alpha": 1e-6}))
    site.send(800, passes=(0.3, 0.3, 0.5, 0.2))
    assert site.tick() == ""
    assert site.last().step == 0


@pytest.mark.slow
def test_without_tests_and_votes_nobody_wins(site: Site) -> None:
    site.experiment()
    site.send(3000)
    assert site.tick() == ""
    assert site.last().open
    assert details(site.last(), site.observations)["arms"][0]["primary"] is None


def test_a_user_counts_where_he_was_first_seen(site: Site) -> None:
    release = site.experiment()
    site.send(200, passes=(0.5,) * 4)
    rows = [row for _, row in site.observations.read()]
    first = FirstRequests(recorded_plan(release))
    assert all(first.admits(row) for row in rows)
    assert not any(first.admits(replace(row, step=1)) for row in rows)
    assert not any(first.admits(replace(row, version=row.version % 4 + 1)) for row in rows)


def test_a_dropped_challenger_costs_the_others_no_pair(site: Site) -> None:
    site.experiment(SETTINGS.model_copy(update={"min_pairs": 10**6}))
    for _ in range(30):
        site.send(37, (0.0, 0.8, 0.0, 0.0))
        site.tick()
    assert site.last().step == 1  # version 2 was dropped
    arms = Arms(site.last())
    arms.follow(site.last(), site.observations)
    rows = [row for _, row in site.observations.read()]
    for version in (3, 4):
        own = sum(row.version == version for row in rows)
        champion = sum(row.version == 1 for row in rows)
        pairs = arms.comparisons[version].watches[0].differences.evidence.count
        assert pairs >= min(own, champion) - 40  # those that wait, or found no partner in time
        assert len(arms.comparisons[version].watches[0].pairings) == 1


def test_requests_are_outside_until_every_challenger_is_loaded(site: Site) -> None:
    site.experiment()
    router = ReleaseRouter(site.releases, site.ledger, site.champion, lambda: {1, 2, 3})
    assert {router.choose(f"user-{n}").release for n in range(50)} == {""}


def test_a_rollback_of_one_challenger_in_the_ledger_ends_the_experiment(site: Site) -> None:
    site.experiment()
    site.ledger.rollback("by hand", "it is bad")
    assert site.tick() == "aborted"
    assert "Version 4 was rolled back" in site.last().last.detail["reasons"][0]


def test_several_versions_have_one_strategy(site: Site) -> None:
    with pytest.raises(NoRelease, match="several are an experiment"):
        open_release(site.ledger, site.releases, SETTINGS, 2, 3, strategy="gradual")
    release = open_release(site.ledger, site.releases, SETTINGS, 2, 3, 4)
    assert (release.champion, release.challengers) == (1, (2, 3, 4))
    assert release.plan["level"] == pytest.approx(0.05 / 18)


def test_the_view_shows_every_arm_with_intervals(site: Site) -> None:
    site.experiment()
    site.send(1200, (0.0, 0.1, 0.0, 0.0), (0.3, 0.3, 0.6, 0.3))
    site.tick()
    view = json.loads(json.dumps(details(site.last(), site.observations)))
    assert [arm["version"] for arm in view["arms"]] == [2, 3, 4]
    for arm in view["arms"]:
        assert len(arm["primary"]["arms"]) == 2
        assert arm["decision"]["reasons"]
        assert {len(row["arms"]) for row in arm["guardrails"]} == {2}
    assert view["steps"][0]["title"].startswith("champion: 25 %, version 2: 25 %")
    assert len(view["steps"][0]["units"]) == 4


def test_answers_of_a_step_that_is_not_known_yet_are_counted_later(site: Site) -> None:
    before = site.experiment()
    site.send(100)
    shares = {"2": 0.2, "3": 0.2, "4": 0.2}
    site.releases.append(before.last, "step", {"shares": shares, "reasons": ["a test"]}, step=1)
    site.router.refresh()
    site.send(100)
    arms = Arms(before)
    arms.follow(before, site.observations)
    assert arms.requests == 100
    arms.follow(site.last(), site.observations)
    assert arms.requests == 200
    assert sum(arms.first.units[1]) > 0
