"""A home is created, or refused in one line, before anything starts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from artifacts.manifest import Manifest
from resources.home import FORMAT, FORMAT_FILE, Home, NotReady


def test_the_default_home_is_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RATCHET_HOME", raising=False)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    assert Home.from_environment().path == tmp_path / ".ratchet"


def test_a_home_with_spaces_in_its_path_works(tmp_path: Path) -> None:
    home = Home(tmp_path / "a home with spaces")
    home.make()
    home.make()
    assert home.path.is_dir()


def test_a_home_of_another_format_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path))
    Home(tmp_path).make()
    assert Home.from_environment().path == tmp_path
    (tmp_path / FORMAT_FILE).write_text("0\n")
    with pytest.raises(NotReady, match=f"has format '0', and this version reads '{FORMAT}'"):
        Home.from_environment()


def test_a_file_as_home_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "file"))
    for use in (Home(tmp_path / "file").make, Home.from_environment):
        with pytest.raises(NotReady, match=r"/file\b.*RATCHET_HOME"):
            use()


def test_too_little_disk_or_memory_is_refused(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with pytest.raises(NotReady, match=r"disk.*1e\+09"):
        home.check_capacity(disk_gib=1e9, memory_gib=0)
    with pytest.raises(NotReady, match=r"memory.*1e\+09"):
        home.check_capacity(disk_gib=0, memory_gib=1e9)
    home.check_capacity(disk_gib=0, memory_gib=0)


def test_a_home_on_a_full_disk_is_refused() -> None:
    full = Path("/dev/full")
    if not full.exists() or os.getuid() != 0:
        pytest.skip("needs /dev/full")
    with pytest.raises(NotReady):
        Home(full / "home").make()


def test_another_storage_root_has_its_own_cache(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    for root in ("memory://first", "memory://second"):
        store = home.store(root)
        assert store.find("datasets", "numbers", "a") is None
        with store.draft("datasets", "numbers") as folder:
            (folder / "numbers.txt").write_text("1")
            store.publish(
                folder, Manifest(kind="datasets", name="numbers", key="a", content_hash="")
            )
        assert store.folder.has("datasets/numbers/a/numbers.txt")
    assert home.store("memory://first/").find("datasets", "numbers", "a")
