"""A home is made or refused in one line before anything starts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from artifacts.manifest import Manifest
from resources.home import Home, NotReady


def test_without_a_variable_the_home_lies_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RATCHET_HOME", raising=False)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    assert Home.from_environment().path == tmp_path / ".ratchet"


def test_a_home_with_spaces_is_made(tmp_path: Path) -> None:
    home = Home(tmp_path / "a home with spaces")
    home.make()
    home.make()
    assert home.path.is_dir()


def test_a_home_that_is_a_file_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(
        NotReady, match=r"cannot be written to .*: set RATCHET_HOME to a folder of yours"
    ):
        Home(tmp_path / "file").make()


def test_too_little_disk_or_memory_is_said_before_anything_starts(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with pytest.raises(NotReady, match=r"GiB of disk left, a run needs 1e\+09"):
        home.check_room(disk_gib=1e9, memory_gib=0)
    with pytest.raises(NotReady, match=r"GiB of memory is available, a run needs 1e\+09"):
        home.check_room(disk_gib=0, memory_gib=1e9)
    home.check_room(disk_gib=0, memory_gib=0)


def test_a_home_on_a_full_disk_is_refused_in_one_line() -> None:
    full = Path("/dev/full")
    if not full.exists() or os.getuid() != 0:
        pytest.skip("needs /dev/full")
    with pytest.raises(NotReady):
        Home(full / "home").make()


def test_another_root_finds_nothing_in_the_first_ones_cache(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    for root in ("memory://first", "memory://second"):
        store = home.store(root)
        assert store.find("datasets", "numbers", "a") is None
        with store.draft("datasets", "numbers") as folder:
            (folder / "numbers.txt").write_text("1")
            store.publish(
                folder, Manifest(kind="datasets", name="numbers", key="a", content_hash="")
            )
        assert store.filesystem.exists(f"{store.base}/datasets/numbers/a/numbers.txt")
    assert home.store("memory://first/").find("datasets", "numbers", "a")
