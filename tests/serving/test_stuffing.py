"""One API key, and somebody who knows a release's id, do not decide what a release shows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from resources.registry.releases import Releases
from serving.experiment.analysis import analyze
from serving.experiment.decision import decide
from serving.experiment.feedback import ALWAYS, KeyLimit
from serving.experiment.guardrail import Guardrail, Harm, HarmSequence
from serving.gateway.observations import Observation
from serving.release.arms import FirstRequests
from serving.release.comparison import ArmComparison
from serving.release.plan import QUALITY, ReleasePlan, plan_of
from serving.release.view import details, overview
from tests.serving.traffic import ANSWER, SETTINGS, Site

HALF = SETTINGS.model_copy(update={"holdback": 0.5})
PLAN = plan_of(SETTINGS, "gradual", 1)


def answers(key: str, verified: bool | None = None) -> list[Observation]:
    """Return 200 answers to as many users of one key, by both versions in turn."""
    row = replace(ANSWER, step=1, key=key, verified=verified)
    return [
        replace(row, response=f"r{n}", version=1 + n % 2, unit=f"{key}-{n}") for n in range(200)
    ]


def harms(rows: list[Observation], plan: ReleasePlan = PLAN) -> dict[str, Harm]:
    comparison = ArmComparison(plan, 2)
    comparison.add(rows)
    return {harm.guardrail.name: harm for harm in comparison.harms()}


def mixed(attack: int, bad: bool = False) -> list[Observation]:
    """Return the tests of 20 honest keys, which the challenger fails if it is bad, and as many of a
    key whose tests the version `attack` fails and the other one passes.
    """
    rows = answers("honest")
    honest = [
        replace(row, key=f"key-{n % 20}", verified=not bad or row.version == 1)
        for n, row in enumerate(rows)
    ]
    hostile = [replace(row, verified=row.version != attack) for row in answers("hostile")]
    return [row for pair in zip(honest, hostile, strict=True) for row in pair]


def test_no_single_key_breaches_a_guardrail() -> None:
    """Neither many rows nor tests that only the challenger fails."""
    assert not harms([replace(row, verified=row.version == 1) for row in answers("k")])[
        QUALITY
    ].breached
    attacked = harms(mixed(attack=2))[QUALITY]
    assert not attacked.breached
    assert attacked.against == "hostile"
    assert harms(mixed(attack=2, bad=True))[QUALITY].breached


def test_no_single_key_clears_a_guardrail() -> None:
    assert harms(mixed(attack=0))[QUALITY].cleared
    assert not harms([replace(row, verified=row.version == 2) for row in answers("k")])[
        QUALITY
    ].cleared
    bad = [row for row in mixed(attack=1, bad=True) if row.key != "hostile" or row.version == 2]
    assert not harms(bad)[QUALITY].cleared


def test_a_key_that_hides_a_breach_is_named() -> None:
    """Each third pair is of a key whose tests the champion alone fails."""
    sequence = HarmSequence(Guardrail(QUALITY, margin=0.3))
    for number in range(600):
        if number % 3:
            sequence.add(0.5, {f"key-{number % 20}": None})
        else:
            sequence.add(-1.0, {"hostile": None})
    harm = sequence.harm(level=0.01, alpha=0.05)
    assert not harm.breached
    assert not harm.cleared
    assert (harm.helped_by, harm.against) == ("hostile", "")
    assert decide([harm], None).reasons[0].endswith("Without key hostile it is shown.")


@pytest.mark.parametrize(
    ("passes", "lies", "fair", "never"),
    [
        ((0.7, 0.7), (1.0, 0.0), "promoted", "rolled_back"),
        ((0.8, 0.2), (0.0, 1.0), "rolled_back", "promoted"),
    ],
)
def test_one_key_moves_no_release(
    tmp_path: Path, passes: Sequence[float], lies: Sequence[float], fair: str, never: str
) -> None:
    """Half of all requests are one key's, whose users and tests are invented."""

    def end(name: str, lies: Sequence[float]) -> str:
        (tmp_path / name).mkdir()
        site = Site(tmp_path / name)
        site.key = lambda number: "hostile" if number % 2 else f"key-{number % 40}"
        site.lies = {"hostile": lies}
        site.open()
        for _ in range(40):
            site.send(100, passes=passes)
            site.tick()
            if not site.last().open:
                break
        return site.last().state

    assert end("honest", passes) == fair
    assert end("attacked", lies) != never


def test_a_trusted_key_counts_without_limit() -> None:
    rows = [replace(row, verified=row.version == 1) for row in answers("app")]
    assert harms(rows, PLAN.model_copy(update={"trusted": ("app",)}))[QUALITY].breached


def test_the_primary_metric_is_not_decided_by_one_key() -> None:
    alone = [replace(row, verified=row.version == 2) for row in answers("k")]
    for rows in (alone, mixed(attack=1)):
        found = analyze(rows, [], challenger=2, shares=[0.1, 0.5], level=0.05, gain=0.0)
        assert found
        assert found.primary.interval.low <= 0


def test_a_key_has_at_most_its_share_of_the_counted_users() -> None:
    """Twenty honest keys with three users each, and one with 200 invented users."""
    limit = KeyLimit(share=0.1)
    honest = [f"key-{n % 20}" for n in range(60)]
    senders = [*honest[:30], *["stuffer"] * 100, *honest[30:], *["stuffer"] * 100]
    admitted = [key for key in senders if limit.admits(key)]
    assert admitted.count("stuffer") == ALWAYS
    assert len(admitted) == 60 + ALWAYS
    assert limit.left_out == {"stuffer": 200 - ALWAYS}


def test_a_key_that_invents_users_hardly_moves_the_result() -> None:
    """Fifty honest keys reject nothing; one key rejects the challenger as 100 users."""
    honest = [
        replace(row, key=f"key-{n % 50}", verified=True)
        for n, row in enumerate(answers("honest", True))
    ]
    stuffed = [replace(row, response=f"s{row.response}", verified=row.version == 1)
               for row in answers("stuffer", True)]  # fmt: skip
    rows = [row for pair in zip(honest, stuffed, strict=True) for row in pair]
    totals = []
    for share in (0.1, 1.0):
        found = analyze(
            rows, [], challenger=2, shares=[0.1, 0.5], level=0.05, gain=0.0, key_share=share
        )
        assert found
        totals.append(found.challenger.total / found.challenger.count)
        assert found.senders.keys == {"stuffer": 200}
        assert ("stuffer" in found.senders.left_out) == (share == 0.1)
    assert totals[0] > 0.88
    assert totals[1] == 0.5


def test_the_same_id_assigns_users_differently(tmp_path: Path) -> None:
    versions = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        site = Site(tmp_path / name)
        site.releases = Releases(site.releases.place)
        assert site.open("blue-green", HALF).id == "release-0001"
        versions.append([site.router.choose(f"u{n}").version for n in range(300)])
    assert 0.3 < sum(a == b for a, b in zip(*versions, strict=True)) / 300 < 0.7


def test_the_salt_is_not_shown(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.releases = Releases(site.releases.place)
    salt = site.open().salt
    shown = json.dumps([overview(site.releases), details(site.last(), site.observations)])
    assert len(salt) == 32
    assert salt not in shown
    assert salt not in repr(site.router.traffic)


@pytest.mark.parametrize("keys", [2, 3, 5, 10])
def test_few_keys_with_equally_many_users_do_not_stop_each_other(keys: int) -> None:
    limit = KeyLimit(share=0.1)
    senders = [f"key-{n % keys}" for n in range(100 * keys)]
    assert all(limit.admits(key) for key in senders)


def test_a_user_whom_a_proxy_sends_to_both_versions_counts_once() -> None:
    """One counted in each would be met by the rarer version when the other has met him before."""
    rows = answers("", verified=True)
    both = [*rows, *(replace(row, version=3 - row.version, verified=False) for row in rows)]
    first = FirstRequests(PLAN)
    comparison = ArmComparison(PLAN, 2)
    comparison.add(row for row in both if first.admits(row))
    assert comparison.units == {1: (100, 100)}


def test_the_first_request_of_a_user_counts_whatever_it_carries() -> None:
    """His answer names his version: tests that come later may be made for it."""
    first = FirstRequests(PLAN)
    plain, later = answers("k")[0], replace(answers("k", verified=False)[0], step=0)
    assert first.admits(plain)
    assert not first.admits(later)
