"""One API key, and somebody who knows a release's id, do not decide what a release shows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from resources.registry.releases import Releases
from serving.experiment.analysis import analyze
from serving.experiment.feedback import ALWAYS, KeyLimit
from serving.gateway.observations import Feedback, Observation
from serving.release.comparison import ArmComparison
from serving.release.plan import QUALITY, plan_of
from serving.release.view import details, overview
from tests.serving.traffic import SETTINGS, Site

HALF = SETTINGS.model_copy(update={"holdback": 0.5})
PLAN = plan_of(SETTINGS.model_copy(update={"users_per_key": 10}), "gradual", 1)


def answers(key: str, verified: bool | None = None) -> list[Observation]:
    """Return 200 answers to as many users of one key, by both versions in turn."""
    row = Observation("", 0.0, 1, "", 0.5, "r", 1, "", key, 0.1, 0.2, 1, 1, verified=verified)
    return [
        replace(row, response=f"r{n}", version=1 + n % 2, unit=f"{key}-{n}") for n in range(200)
    ]


@pytest.mark.parametrize(("key", "pairs"), [("k", 10), ("", 100)])
def test_tests_of_one_key_count_for_a_limited_number_of_users(key: str, pairs: int) -> None:
    comparison = ArmComparison(PLAN, 2)
    comparison.add(answers(key, verified=False))
    by_name = {harm.guardrail.name: harm.pairs for harm in comparison.harms()}
    assert by_name[QUALITY] == pairs
    assert by_name["errors"] == 100


@pytest.mark.parametrize(("key", "units"), [("k", 20), ("", 200)])
@pytest.mark.parametrize("votes", [False, True])
def test_the_primary_metric_has_a_limited_number_of_users_of_a_key(
    key: str, units: int, votes: bool
) -> None:
    rows = answers(key, None if votes else True)
    cast = [Feedback(row.response, 1.0, key, row.unit, 1.0) for row in rows if votes]
    found = analyze(
        rows, cast, challenger=2, shares=[0.1, 0.5], level=0.05, gain=0.0, users_per_key=10
    )
    assert found
    assert found.units == units


def test_a_key_has_at_most_its_share_of_the_counted_users() -> None:
    """Twenty honest keys with three users each, and one with 200 invented users."""
    limit = KeyLimit(most=1000, share=0.1)
    honest = [f"key-{n % 20}" for n in range(60)]
    senders = [*honest[:30], *["stuffer"] * 100, *honest[30:], *["stuffer"] * 100]
    admitted = [key for key in senders if limit.admits(key)]
    assert admitted.count("stuffer") == ALWAYS
    assert len(admitted) == 60 + ALWAYS
    assert limit.left_out == {"stuffer": 200 - ALWAYS}


def test_the_only_key_is_limited_by_its_users_alone() -> None:
    limit = KeyLimit(most=50, share=0.1)
    assert sum(limit.admits("app") for _ in range(80)) == 50


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
    limit = KeyLimit(most=100, share=0.1)
    senders = [f"key-{n % keys}" for n in range(100 * keys)]
    assert all(limit.admits(key) for key in senders)


def test_a_user_whom_a_proxy_sends_to_both_versions_counts_once() -> None:
    """One counted in each would be met by the rarer version when the other has met him before."""
    rows = answers("k", verified=True)
    both = [*rows, *(replace(row, version=3 - row.version, verified=False) for row in rows)]
    comparison = ArmComparison(PLAN, 2)
    comparison.add(both)
    assert comparison.units == {1: (100, 100)}
    found = analyze(both, [], challenger=2, shares=[0.1, 0.5], level=0.05, gain=0.0)
    assert found
    assert found.champion.total == found.champion.count == 100
    assert found.challenger.total == found.challenger.count == 100
