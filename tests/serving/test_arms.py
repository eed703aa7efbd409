"""Experiments with several challengers: allocation, decisions for each, and their record."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evaluation.statistics.online.confidence_sequence import log_capital
from evaluation.statistics.online.pairs import Pairing
from resources.registry.releases import NoRelease, deployed
from serving.experiment.thompson import Successes, probability_of_best, thompson_shares
from serving.release.arms import Arms
from serving.release.opening import open_release
from serving.release.router import ReleaseRouter
from serving.release.view import details
from tests.serving.traffic import SETTINGS, Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """Return a home with a champion and three challengers."""
    site = Site(tmp_path, versions=4)
    site.controller.clock = lambda: time.time() + 60  # every step has lasted long enough
    return site


def run(site: Site, passes: tuple[float, ...], errors: tuple[float, ...] = (0.0,) * 4) -> None:
    """Send requests until the experiment ends."""
    for _ in range(60):
        site.send(400, errors, passes)
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
    assert dropped == [2] and site.last().open
    assert site.last().last.detail["reasons"][0].startswith("Version 2: errors: worse than")
    choices = site.send(900)
    assert {choice.version for choice in choices} == {1, 3, 4}
    assert site.router.versions() == [1, 3, 4]


def test_a_paused_experiment_still_drops_a_harmful_challenger_and_stays_paused(site: Site) -> None:
    site.releases.append(site.experiment().last, "paused", {"reasons": ["a holiday"]})
    while not site.last().last.detail.get("dropped"):
        site.send(100, (0.0, 0.5, 0.0, 0.0), (0.3, 0.3, 0.9, 0.3))
        site.tick()
    assert site.last().state == "paused" and site.last().step == 1
    site.send(2000, passes=(0.3, 0.3, 0.9, 0.3))
    assert site.tick() == ""


def test_without_a_better_challenger_the_champion_stays_with_reasons_for_each(site: Site) -> None:
    site.experiment()
    run(site, (0.8, 0.3, 0.4, 0.8), (0.0, 0.0, 0.0, 0.5))
    last = site.last()
    assert last.state == "rolled_back" and deployed([last]) == 1
    for version in (2, 3, 4):
        assert any(r.startswith(f"Version {version}: ") for r in last.last.detail["reasons"])


def test_an_equal_challenger_is_dropped_after_its_pairs(site: Site) -> None:
    site.experiment(SETTINGS.model_copy(update={"most_pairs": 100}))
    run(site, (0.5,) * 4)
    assert site.last().state == "rolled_back"
    assert "No gain is shown in" in " ".join(site.last().last.detail["reasons"])


def test_thompson_gives_the_better_arm_more_and_every_arm_its_least(site: Site) -> None:
    site.experiment(SETTINGS.model_copy(update={"least_share": 0.05, "alpha": 1e-6}))
    for _ in range(4):
        site.send(200, passes=(0.3, 0.3, 0.5, 0.2))
        assert site.tick() == "step"
    shares = site.last().last.detail["shares"]
    assert max(shares, key=shares.get) == "3" and shares["3"] > 0.5
    assert min(shares.values()) >= 0.05 and 1 - sum(shares.values()) >= 0.05 - 1e-9


def test_equal_allocation_stays_equal(site: Site) -> None:
    site.experiment(SETTINGS.model_copy(update={"allocation": "equal", "alpha": 1e-6}))
    site.send(800, passes=(0.3, 0.3, 0.5, 0.2))
    assert site.tick() == "" and site.last().step == 0


def test_without_tests_and_votes_nobody_wins(site: Site) -> None:
    site.experiment()
    site.send(3000)
    assert site.tick() == "" and site.last().open
    assert details(site.last(), site.observations)["arms"][0]["primary"] is None


def test_the_chance_to_be_the_best_is_the_posterior_one() -> None:
    arms = {0: Successes(50, 20.0), 1: Successes(80, 40.0), 2: Successes(10, 5.0)}
    rng = np.random.default_rng(1)
    draws = [rng.beta(1 + a.total, 1 + a.count - a.total, 200_000) for a in arms.values()]
    shares = np.bincount(np.argmax(draws, 0), minlength=3) / 200_000
    assert list(probability_of_best(arms).values()) == pytest.approx(list(shares), abs=0.005)


def test_floors_that_exceed_one_are_refused() -> None:
    with pytest.raises(ValueError, match="exceed 1"):
        thompson_shares({n: Successes(1, 1.0) for n in range(4)}, 0.3)


def test_a_user_counts_where_he_was_first_seen(site: Site) -> None:
    release = site.experiment()
    site.send(200, passes=(0.5,) * 4)
    rows = [row for _, row in site.observations.read()]
    arms = Arms(release)
    assert all(arms.counts(row) for row in rows)
    assert not any(arms.counts(replace(row, step=1)) for row in rows)
    assert not any(arms.counts(replace(row, version=row.version % 4 + 1)) for row in rows)


def test_a_dropped_challenger_costs_the_others_no_pair(site: Site) -> None:
    site.experiment(SETTINGS.model_copy(update={"least_pairs": 10**6}))
    for _ in range(30):
        site.send(37, (0.0, 0.4, 0.0, 0.0))
        site.tick()
    assert site.last().step == 1  # version 2 was dropped
    arms = Arms(site.last())
    arms.follow(site.last(), site.observations)
    rows = [row for _, row in site.observations.read()]
    for version in (3, 4):
        own = sum(row.version == version for row in rows)
        champion = sum(row.version == 1 for row in rows)
        pairs = arms.comparisons[version].watches[0].differences.count
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
        open_release(site.ledger, site.releases, SETTINGS, 2, 3, strategy="gradual", why="")
    release = open_release(site.ledger, site.releases, SETTINGS, 2, 3, 4, why="")
    assert (release.champion, release.challengers) == (1, (2, 3, 4))
    assert release.plan["level"] == pytest.approx(0.05 / 15)


def test_the_view_shows_every_arm_with_intervals(site: Site) -> None:
    site.experiment()
    site.send(1200, (0.0, 0.1, 0.0, 0.0), (0.3, 0.3, 0.6, 0.3))
    site.tick()
    view = json.loads(json.dumps(details(site.last(), site.observations)))
    assert [arm["version"] for arm in view["arms"]] == [2, 3, 4]
    for arm in view["arms"]:
        assert len(arm["primary"]["arms"]) == 2 and arm["decision"]["reasons"]
        assert {len(row["arms"]) for row in arm["guardrails"]} == {2}
    assert view["steps"][0]["title"].startswith("champion: 25 %, version 2: 25 %")
    assert len(view["steps"][0]["units"]) == 4


def false_decisions(experiments: int, arms: int, requests: int, alpha: float, seed: int) -> int:
    """Return in how many experiments with equal arms, under Thompson sampling, an arm is ever shown
    to be better or worse than the champion, looked at after every pair.
    """
    rng, level, wrong = np.random.default_rng(seed), alpha / (2 * arms), 0
    for _ in range(experiments):
        counts = {arm: Successes(0, 0.0) for arm in range(arms + 1)}
        differences: dict[int, list[float]] = {arm: [] for arm in range(1, arms + 1)}
        for _ in range(6):
            shares = thompson_shares(counts, 0.1)
            weights = np.array(list(shares.values()))
            drawn = rng.choice(arms + 1, requests // 6, p=weights / weights.sum()).tolist()
            values = (rng.random(requests // 6) < 0.5).tolist()
            for arm, own in differences.items():
                pairing = Pairing(shares[arm] / (shares[arm] + shares[0]))
                for who, value in zip(drawn, values, strict=True):
                    if who in (0, arm):
                        difference = pairing.add(who == arm, float(value))
                        own += [] if difference is None else [difference]
            for who, value in zip(drawn, values, strict=True):
                counts[who] = Successes(counts[who].count + 1, counts[who].total + value)
        wrong += any(
            log_capital((1 + sign * np.array(own)) / 2, 0.5).max() >= -np.log(level)
            for own in differences.values()
            for sign in (-1, 1)
        )
    return wrong


@pytest.mark.slow
def test_thompson_sampling_makes_no_more_false_decisions_than_alpha() -> None:
    experiments, alpha = 2000, 0.2
    assert false_decisions(experiments, 2, 300, alpha, seed=1) <= alpha * experiments


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
    assert arms.requests == 200 and sum(arms.first.units[1]) > 0
