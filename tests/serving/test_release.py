"""A release goes forward by steps, takes itself back, and survives the death of its processes."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

import pytest

from resources.config.release import ReleaseSettings
from resources.registry.releases import Kind, NoRelease, ReleaseMoved
from serving.release.arms import FirstRequests
from serving.release.comparison import ArmComparison
from serving.release.controller import Controller
from serving.release.plan import ReleasePlan, needs, plan_of, recorded_plan
from serving.release.router import ReleaseRouter
from serving.release.step_clock import StepClock
from serving.release.view import Views, details
from tests.resources.ledger_entries import put
from tests.serving.traffic import SETTINGS, Site, open_release


def test_without_a_release_the_champion_of_the_ledger_answers(site: Site) -> None:
    assert {choice.version for choice in site.send(100)} == {2}
    assert site.router.versions() == [2]


def test_an_equal_challenger_goes_through_all_steps(site: Site) -> None:
    site.open()
    kinds = []
    while site.last().open:
        site.send(200)
        kinds.append(site.tick())
    assert [kind for kind in kinds if kind] == ["step", "step", "promoted"]
    assert {choice.version for choice in site.send(100)} == {2}


def test_a_step_gives_the_challenger_its_share(site: Site) -> None:
    site.open()
    choices = site.send(2000)
    assert sum(c.version == 2 for c in choices) == pytest.approx(200, abs=50)
    assert {c.share for c in choices} == {0.1, 0.9}
    assert site.router.versions() == [1, 2]


def test_a_user_keeps_the_version_within_a_release(site: Site) -> None:
    site.open()
    before = [site.router.choose(f"user-{n}").version for n in range(500)]
    assert before == [site.router.choose(f"user-{n}").version for n in range(500)]
    site.send(200)
    assert site.tick() == "step"
    after = [site.router.choose(f"user-{n}").version for n in range(500)]
    assert all(new == 2 for old, new in zip(before, after, strict=True) if old == 2)


def test_a_failing_challenger_is_taken_back_with_the_evidence(site: Site) -> None:
    site.open()
    while site.last().open:
        site.send(100, errors=(0.0, 0.9))
        site.tick()
    event = site.last().last
    assert event.kind == "rolled_back"
    assert event.detail["reasons"][0].startswith("errors: worse than the champion by more than 0.3")
    errors = event.detail["guardrails"][0]
    assert errors["low"] > 0.3
    assert errors["p_value"] <= errors["level"]
    assert {choice.version for choice in site.send(100)} == {1}


def test_a_champion_that_fails_as_often_is_no_reason_to_go_back(site: Site) -> None:
    site.open()
    while site.last().open:
        site.send(200, errors=(0.6, 0.6))
        site.tick()
    assert site.last().state == "promoted"


def test_a_step_bakes_for_its_time(site: Site) -> None:
    site.open(settings=SETTINGS.model_copy(update={"bake_s": 60.0}))
    site.send(500)
    assert site.tick() == ""
    now = time.time()
    site.controller = Controller(
        site.releases, site.ledger, site.observations, clock=lambda: now + 61
    )
    assert site.tick() == "step"


@pytest.mark.parametrize("jump_s", [3600.0, -3600.0])
def test_a_clock_that_jumps_neither_shortens_nor_lengthens_a_step(
    site: Site, jump_s: float
) -> None:
    steady = [0.0]
    site.controller.step_clock.steady = lambda: steady[0]
    site.open(settings=SETTINGS.model_copy(update={"bake_s": 60.0}))
    site.send(500)
    assert site.tick() == ""
    site.controller.clock = lambda: time.time() + jump_s
    steady[0] = 55.0
    assert site.tick() == ""
    steady[0] = 61.0
    assert site.tick() == "step"


def test_the_last_step_waits_until_every_guardrail_is_cleared(site: Site) -> None:
    """Ten points worse is no breach here, and not shown to be tolerable: margin 12 points."""
    site.open(settings=SETTINGS.model_copy(update={"errors_margin": 0.12}))
    for _ in range(3):
        site.send(200, errors=(0.0, 0.1))
        site.tick()
    assert (site.last().state, site.last().step) == ("running", 1)
    assert "is not ruled out yet" in " ".join(
        details(site.last(), site.observations)["decision"]["reasons"]
    )


@pytest.mark.parametrize("change", [{"max_pairs": 20}, {"max_days": 1e-9}])
def test_a_release_that_shows_too_little_ends_undecided(
    site: Site, change: dict[str, float]
) -> None:
    site.open(settings=SETTINGS.model_copy(update={"errors_margin": 0.01, **change}))
    for _ in range(4):
        site.send(200)
        site.tick()
    assert site.last().state == "undecided"
    assert site.last().last.detail["reasons"][0].startswith("Undecided after")
    assert {choice.version for choice in site.send(10)} == {1}


@pytest.mark.slow
def test_a_harm_that_shows_after_the_decision_is_taken_back(site: Site) -> None:
    site.open(settings=SETTINGS.model_copy(update={"watch_s": 600.0}))
    while site.last().step < 2:
        site.send(200)
        site.tick()
    assert {round(choice.share, 9) for choice in site.send(100)} == {0.95, 0.05}
    for _ in range(40):
        site.send(200, errors=(0.0, 0.95))
        site.tick()
    assert site.last().state == "rolled_back"


def test_a_pause_does_not_bake(site: Site) -> None:
    release = site.open(settings=SETTINGS.model_copy(update={"bake_s": 60.0}))
    times: list[tuple[Kind, float]] = [("opened", 0.0), ("paused", 10.0), ("resumed", 1000.0)]
    events = [
        replace(release.last, kind=kind, created_at=datetime.fromtimestamp(at, UTC).isoformat())
        for kind, at in times
    ]
    resumed = replace(release, events=tuple(events))
    assert resumed.running() == (10.0, 10.0, 1000.0)
    assert StepClock(lambda: 0.0).ran(resumed, 1030.0) == 40.0


def test_a_step_without_enough_pairs_waits(site: Site) -> None:
    site.open()
    site.send(10)
    assert site.tick() == ""


def test_a_paused_release_does_not_advance_but_is_still_taken_back(site: Site) -> None:
    site.releases.append(site.open().last, "paused", {"reasons": ["by hand"]})
    site.send(500)
    assert site.tick() == ""
    for _ in range(20):
        site.send(100, errors=(0.0, 0.9))
        site.tick()
    assert site.last().state == "rolled_back"


def test_blue_green_keeps_a_part_of_the_traffic_for_the_comparison(site: Site) -> None:
    site.open("blue-green")
    choices = site.send(1000)
    assert sum(c.version == 2 for c in choices) == pytest.approx(950, abs=30)
    assert [site.tick(), site.tick()] == ["step", "promoted"]


def test_a_shadow_answers_nobody_and_a_person_decides(site: Site) -> None:
    site.open("shadow")
    choices = site.send(100)
    assert {c.version for c in choices} == {1}
    assert {c.shadows for c in choices} == {(2,)}
    assert site.tick() == "paused"
    site.releases.append(site.last().last, "resumed", {"reasons": ["looks good"]})
    assert [site.tick(), site.tick()] == ["step", "promoted"]


def test_a_shadow_that_was_paused_early_asks_once_it_has_answered_enough(site: Site) -> None:
    site.open("shadow")
    for kind in ("paused", "resumed"):
        site.releases.append(site.last().last, kind, {"reasons": ["a holiday"]})  # type: ignore[arg-type]
    site.send(100)
    assert site.tick() == "paused"
    site.releases.append(site.last().last, "resumed", {"reasons": ["agreed"]})
    assert [site.tick(), site.tick()] == ["step", "promoted"]


def test_a_failing_shadow_is_taken_back(site: Site) -> None:
    site.open("shadow")
    site.send(60, errors=(0.0, 0.9))
    assert site.tick() == "rolled_back"


def test_immediate_gives_all_traffic_at_once(site: Site) -> None:
    site.open("immediate")
    assert site.tick() == "promoted"
    assert {choice.version for choice in site.send(10)} == {2}


def test_after_a_restart_a_changed_record_sends_nobody_to_the_challenger(site: Site) -> None:
    site.open()
    forged = "INSERT INTO release_events VALUES (2, 'release-0001', 'promoted', 0, '{}', '')"
    with sqlite3.connect(site.releases.place) as connection:
        connection.execute(forged)
    site.router.refresh()
    assert site.router.versions() == [1, 2]  # as last known
    restarted = ReleaseRouter(site.releases, site.ledger, site.champion)
    with pytest.raises(LookupError, match="not what was recorded"):
        restarted.choose("user-1")


def test_a_person_and_the_controller_do_not_both_decide(site: Site) -> None:
    seen = site.open().last
    site.send(200)
    assert site.tick() == "step"
    with pytest.raises(ReleaseMoved):
        site.releases.append(seen, "paused", {"reasons": ["too late"]})


def test_requests_lost_in_one_arm_are_a_sample_ratio_mismatch(site: Site) -> None:
    release = site.open()
    site.send(3000)
    rows = [row for _, row in site.observations.read()]
    whole, lossy = (ArmComparison(ReleasePlan.model_validate(release.plan), 2) for _ in range(2))
    whole.add(rows)
    lossy.add(row for n, row in enumerate(rows) if row.version == 1 or n % 2)
    assert whole.ratio_p_value() > 0.05
    assert lossy.ratio_p_value() < 1e-6


def test_a_user_with_many_requests_counts_once(site: Site) -> None:
    release = site.open()
    site.send(100)
    rows = [row for _, row in site.observations.read()]
    first = FirstRequests(recorded_plan(release))
    assert [row for row in rows for _ in range(30) if first.admits(row)] == rows


def test_a_plan_says_beforehand_that_smaller_harm_needs_more_requests() -> None:
    plan = plan_of(ReleaseSettings(), "gradual", 1)
    table = needs(plan, base=0.02, share=0.5)
    assert [need.drop for need in table] == [0.05, 0.2]
    assert table[0].watched > 5 * table[1].watched
    assert needs(plan, 0.02, share=0.01)[0].watched > 5 * table[0].watched


def test_alpha_over_all_releases_makes_later_levels_smaller() -> None:
    every = ReleaseSettings(alpha_over="all")
    assert plan_of(every, "gradual", 9).level < plan_of(every, "gradual", 1).level
    assert plan_of(ReleaseSettings(), "gradual", 9).level == pytest.approx(0.05 / 6)


def test_a_plan_with_a_gain_waits_until_quality_is_measured(site: Site) -> None:
    site.open("blue-green", SETTINGS.model_copy(update={"gain": -0.05}))
    site.send(1000)
    assert site.tick() == ""
    assert site.last().open


def test_the_view_tells_steps_arms_and_reasons(site: Site) -> None:
    site.open()
    site.send(300)
    site.tick()
    view = details(site.last(), site.observations)
    assert [step["state"] for step in view["steps"]] == ["done", "now", "next"]
    errors = view["guardrails"][0]
    assert errors["pairs"] > 20
    assert len(errors["arms"]) == 2
    assert view["primary"] is None
    assert view["events"][1]["reasons"][0].startswith("10 %: no guardrail was breached")
    assert json.loads(json.dumps(view))["decision"]["kind"] == view["decision"]["kind"]


def test_the_view_of_a_promotion_agrees_with_it_though_no_gain_is_shown(site: Site) -> None:
    site.open()
    for _ in range(40):
        site.send(100, passes=(0.7, 0.7))
        if site.tick() == "promoted":
            break
    decision = details(site.last(), site.observations)["decision"]
    assert decision["kind"] == "deploy"
    assert not [reason for reason in decision["reasons"] if "not measured" in reason]


def test_a_version_that_is_no_champion_is_not_deployed(site: Site) -> None:
    put(site.ledger, "c", "refuse")
    with pytest.raises(NoRelease, match="version 3 is no champion"):
        open_release(site.ledger, site.releases, SETTINGS, 3)


def test_the_first_release_compares_with_the_champion_before(site: Site) -> None:
    release = open_release(site.ledger, site.releases, SETTINGS, 2)
    assert (release.champion, release.challenger) == (1, 2)
    while site.last().open:
        site.router.refresh()
        site.send(200)
        site.tick()
    with pytest.raises(NoRelease, match="answers all requests already"):
        open_release(site.ledger, site.releases, SETTINGS, 2)


CONTROLLER = """
import sys
from pathlib import Path
from threading import Event
from resources.registry.ledger import Ledger
from resources.registry.releases import Releases
from serving.gateway.observations import Observations
from serving.release.controller import Controller
home = Path(sys.argv[1])
ledger, observations = Ledger(home / "promotions.db"), Observations(home / "observations.db")
print("runs", flush=True)
Controller(Releases(home / "promotions.db"), ledger, observations).run(Event(), every_s=0.05)
"""


@contextmanager
def controller(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", CONTROLLER, str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout
    assert process.stdout.readline() == b"runs\n"
    try:
        yield process
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()


def test_a_breach_is_answered_within_five_seconds(site: Site) -> None:
    site.open(settings=SETTINGS.model_copy(update={"bake_s": 600.0}))
    watched, read, stop = ArmComparison(ReleasePlan.model_validate(site.last().plan), 2), 0, Event()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(site.controller.run, stop, every_s=0.05)
        while site.last().open and not watched.breached():
            site.send(20, errors=(0.0, 0.4))
            rows = list(site.observations.read(read))
            watched.add(row for _, row in rows)
            read = rows[-1][0]
        shown = time.time()
        while site.last().open and time.time() - shown < 5:
            time.sleep(0.02)
        stop.set()
    assert site.last().state == "rolled_back"


@pytest.mark.slow
def test_killed_controllers_lose_no_step_and_repeat_none(tmp_path: Path, site: Site) -> None:
    rng, kills = random.Random(1), 0
    for _ in range(2):
        site.open(settings=SETTINGS.model_copy(update={"bake_s": 0.3, "shares": (0.1, 0.3, 0.5)}))
        while site.last().open:
            with controller(tmp_path):
                end = time.time() + rng.uniform(0.1, 1.2)
                while time.time() < end and site.last().open:
                    site.router.refresh()
                    site.send(20)
                    time.sleep(0.02)
            kills += 1
        kinds = [(event.kind, event.step) for event in site.last().events]
        assert kinds == [("opened", 0), ("step", 1), ("step", 2), ("step", 3), ("promoted", 3)]
    assert kills > 2


def test_a_view_is_kept_for_a_while_and_an_event_is_shown_at_once(site: Site) -> None:
    site.open()
    views = Views(site.observations)
    assert views.of(site.last())["requests"] == 0
    views._until = time.monotonic() + 3600
    site.send(300)
    assert views.of(site.last())["requests"] == 0
    assert site.tick() == "step"
    assert views.of(site.last())["requests"] == 300
