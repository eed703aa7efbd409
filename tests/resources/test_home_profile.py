"""A home remembers the profile that it was begun with."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from resources import settings as module
from resources.config.load import ProfileError
from resources.settings import Settings


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("RATCHET_PROFILE", raising=False)
    monkeypatch.setattr(module, "_SAID", set())
    return tmp_path / "home"


def test_a_command_without_a_profile_uses_that_of_the_home(home: Path) -> None:
    Settings.read("small").remember()
    settings = Settings.read()
    assert (settings.profile_name, settings.chosen) == ("small", False)


def test_a_command_that_names_none_is_not_remembered(home: Path) -> None:
    Settings.read().remember()
    assert Settings.read().profile_name == "embedded"
    assert not home.exists()


def test_another_profile_is_named_once_and_not_remembered(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("small", "gpu", "gpu"):
        Settings.read(name).remember()
    [line] = capsys.readouterr().err.splitlines()
    assert "begun with the profile small" in line
    assert "uses gpu" in line
    assert Settings.read().profile_name == "small"


def test_the_same_profile_is_not_named(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        Settings.read("small").remember()
    assert capsys.readouterr().err == ""


def test_a_file_in_the_home_moves_with_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home.mkdir()
    (home / "mine.yaml").write_text("seed: 7\n", encoding="utf-8")
    Settings.read(str(home / "mine.yaml")).remember()
    shutil.move(home, home.with_name("new"))
    monkeypatch.setenv("RATCHET_HOME", str(home.with_name("new")))
    assert Settings.read().profile.seed == 7


def test_a_file_that_is_gone_is_named_with_the_fix(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("seed: 7\n", encoding="utf-8")
    Settings.read(str(file)).remember()
    file.unlink()
    with pytest.raises(ProfileError, match=rf"mine\.yaml.*{home}/profile names this profile"):
        _ = Settings.read().profile
