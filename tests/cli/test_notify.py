"""`ratchet notify` names the receivers by their variables, never by their URLs."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Called
from tests.pipelines.home_builder import HomeBuilder


def test_an_unset_variable_is_named_without_a_url(
    home_builder: HomeBuilder,
    ratchet: Called,
    tmp_path: Path,
) -> None:
    profile = tmp_path / "mine.yaml"
    profile.write_text("extends: small\nnotify: {receivers: [{url: NOT_SET}]}\n", encoding="utf-8")
    code, _, error = ratchet(
        home_builder.run_context.home.path, "notify", "--test", "-p", str(profile)
    )
    assert code == 1
    assert error == "error: the environment variable NOT_SET (notify.receivers) is not set\n"


def test_a_url_in_the_profile_is_refused_and_not_printed(ratchet: Called, tmp_path: Path) -> None:
    profile = tmp_path / "mine.yaml"
    profile.write_text(
        "extends: small\nnotify: {receivers: [{url: 'slack://token/#ops'}]}\n", encoding="utf-8"
    )
    code, _, error = ratchet(tmp_path / "home", "notify", "-p", str(profile))
    assert code == 2
    assert "environment variable" in error
    assert "token" not in error


def test_the_watch_names_a_variable_that_is_not_set_before_anything_happens(
    ratchet: Called, tmp_path: Path
) -> None:
    profile = tmp_path / "mine.yaml"
    profile.write_text("extends: small\nnotify: {receivers: [{url: NOT_SET}]}\n", encoding="utf-8")
    code, _, error = ratchet(tmp_path / "home", "watch", "-p", str(profile))
    assert code == 1
    assert "NOT_SET (notify.receivers) is not set" in error
