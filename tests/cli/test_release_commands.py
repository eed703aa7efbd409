"""`ratchet deploy` and `ratchet release`, on a home with two versions and simulated requests."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from resources.home import Home
from tests.cli.conftest import Called
from tests.serving.gateway_server import promote
from tests.serving.traffic import Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.fixture
def weights(tmp_path: Path, site: Site) -> Path:
    """Return a file of version 3, the champion."""
    file = tmp_path / "checkpoint" / "model.safetensors"
    file.parent.mkdir()
    file.write_bytes(b"weights")
    promote(Home(tmp_path), "c", file.parent)
    return file


def test_deploy_says_beforehand_what_the_release_needs(
    ratchet: Called, site: Site, weights: Path, tmp_path: Path
) -> None:
    code, out, _ = ratchet(tmp_path, "deploy", "3", "--yes")
    assert code == 0
    assert "version 3 beside version 2, gradual" in out
    assert "5,000" in out  # requests for 50 pairs at 1 %
    assert "no request was answered in the last day" in " ".join(out.split())
    assert site.last().open


def test_deploy_asks_before_it_moves_requests_back_and_before_it_takes_months(
    ratchet: Called, site: Site, weights: Path, tmp_path: Path
) -> None:
    site.send(70)
    code, out, error = ratchet(tmp_path, "deploy", "3")
    assert code == 2
    assert "days" in out
    assert "Version 3 answers everything now; this moves 99 % back to version 2" in error
    assert "it takes about" in error
    assert "--strategy shadow" in error
    assert site.releases.all() == []


def test_a_version_with_a_changed_byte_is_not_deployed(
    ratchet: Called, site: Site, weights: Path, tmp_path: Path
) -> None:
    weights.write_bytes(b"Weights")
    code, _, error = ratchet(tmp_path, "deploy", "3")
    assert code == 2
    assert "was changed" in error
    assert site.releases.all() == []


def test_the_old_name_of_the_command_is_refused_with_the_new_one(
    ratchet: Called, tmp_path: Path
) -> None:
    code, _, error = ratchet(tmp_path, "rollout", "status")
    assert code == 2
    assert "use `ratchet release`" in error
    assert len(error.strip().splitlines()) == 1


def test_a_second_deploy_names_the_open_release(
    ratchet: Called, weights: Path, tmp_path: Path
) -> None:
    ratchet(tmp_path, "deploy", "champion", "--strategy", "shadow", "--yes")
    code, _, error = ratchet(tmp_path, "deploy", "champion")
    assert code == 2
    assert "release-0001 of version 3 is running" in error


def test_status_shows_both_arms_and_the_reasons(
    ratchet: Called, site: Site, tmp_path: Path
) -> None:
    site.open()
    while site.last().open:
        site.send(100, errors=(0.0, 0.9))
        site.tick()
    code, out, _ = ratchet(tmp_path, "release", "status")
    assert code == 0
    assert "rolled back" in out
    assert "errors: worse than the champion" in out
    assert "Quality is not measured" in out


def test_several_versions_are_an_experiment_and_status_shows_each(
    ratchet: Called, tmp_path: Path
) -> None:
    site = Site(tmp_path, versions=3)
    for name in "xy":
        folder = tmp_path / name
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(name.encode())
        promote(Home(tmp_path), name, folder)
    code, out, _ = ratchet(tmp_path, "deploy", "4", "5", "--yes")
    assert code == 0
    assert "versions 4, 5 beside version 3, experiment" in out
    assert "until a gain above 0 is shown" in out
    site.router.refresh()
    site.send(200, passes=(0.5,) * 5)
    code, out, _ = ratchet(tmp_path, "release", "status")
    assert code == 0
    assert "version 4, 33.3 %" in out
    assert "version 5, 33.3 %" in out
    assert out.count("verified answers: champion") == out.count("decision by now") == 2
    code, _, error = ratchet(tmp_path, "deploy", "4", "5", "--strategy", "gradual")
    assert code == 2
    assert "several are an experiment" in error


def test_a_release_is_paused_resumed_and_aborted_by_hand(
    ratchet: Called, site: Site, tmp_path: Path
) -> None:
    site.open()
    assert ratchet(tmp_path, "release", "pause", "--reason", "a holiday")[0] == 0
    assert site.last().state == "paused"
    assert site.last().last.detail["reasons"] == ["a holiday"]
    code, _, error = ratchet(tmp_path, "release", "pause")
    assert code == 2
    assert "is paused" in error
    assert ratchet(tmp_path, "release", "resume")[0] == 0
    assert site.last().state == "running"
    assert ratchet(tmp_path, "release", "abort")[0] == 0
    assert site.last().state == "aborted"


def test_watching_ends_with_the_release(ratchet: Called, site: Site, tmp_path: Path) -> None:
    site.open("immediate")
    site.tick()
    code, out, _ = ratchet(tmp_path, "release", "status", "--watch")
    assert code == 0
    assert "promoted" in out


def test_verifying_the_registry_verifies_the_releases(
    ratchet: Called, site: Site, tmp_path: Path
) -> None:
    site.open()
    with sqlite3.connect(tmp_path / "promotions.db") as connection:
        connection.execute("DROP TRIGGER release_events_never_changed")
        connection.execute("UPDATE release_events SET step = 1")
    code, _, error = ratchet(tmp_path, "registry", "verify")
    assert code == 2
    assert "event 1 of the releases is not what was recorded" in error


def test_a_reason_is_shown_as_it_was_given(ratchet: Called, site: Site, tmp_path: Path) -> None:
    site.open()
    ratchet(tmp_path, "release", "abort", "--reason", "[/] not [bold] enough")
    code, out, _ = ratchet(tmp_path, "release", "status")
    assert code == 0
    assert "aborted: [/] not [bold] enough" in out


def test_status_names_the_deployed_version(ratchet: Called, site: Site, tmp_path: Path) -> None:
    assert "release-" not in ratchet(tmp_path, "status")[1]
    site.open()
    out = " ".join(ratchet(tmp_path, "status")[1].split())
    assert "deployed version 1; release-0001 of version 2 is running" in out
