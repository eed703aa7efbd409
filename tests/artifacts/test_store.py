"""Artifacts are published whole, once, and can be found again.

Leftovers of a killed process do not get in the way.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from artifacts.manifest import Manifest
from artifacts.store import Artifact, CorruptArtifact, Store

KILLED = """
import os, signal, sys
from artifacts.store import Store
with Store(sys.argv[1]).draft("datasets", "numbers") as folder:
    (folder / "half").write_text("1")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def publish(store: Store, key: str, text: str) -> Artifact:
    with store.draft("datasets", "numbers") as folder:
        (folder / "numbers.txt").write_text(text)
        return store.publish(
            folder, Manifest(kind="datasets", name="numbers", key=key, content_hash="")
        )


def test_what_was_published_is_found_by_its_key_and_is_current(tmp_path: Path) -> None:
    store = Store(tmp_path)
    made = publish(store, "a", "1")
    assert store.find("datasets", "numbers", "a") == store.current("datasets", "numbers") == made
    assert store.find("datasets", "numbers", "b") is None


def test_a_key_is_published_once(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first = publish(store, "a", "1")
    assert publish(store, "a", "2") == first and (first.path / "numbers.txt").read_text() == "1"


class Late(Store):
    """A store in which another process publishes the same artifact right after the lookup."""

    def find(self, kind: str, name: str, key: str) -> Artifact | None:
        if (found := super().find(kind, name, key)) is None:
            publish(Store(self.root), key, "of the first")
        return found


def test_of_two_processes_that_publish_the_same_the_first_one_s_stays(tmp_path: Path) -> None:
    made = publish(Late(tmp_path), "a", "of the second")
    assert (
        made == Store(tmp_path).current("datasets", "numbers")
        and (made.path / "numbers.txt").read_text() == "of the first"
    )
    assert [path.name for path in made.path.parent.iterdir() if path.is_dir()] == ["a"]


def test_what_lies_there_without_a_manifest_makes_way(tmp_path: Path) -> None:
    (half := tmp_path / "datasets" / "numbers" / "a").mkdir(parents=True)
    (half / "half").touch()
    assert publish(Store(tmp_path), "a", "1").path == half and not (half / "half").exists()


def test_a_changed_file_is_noticed(tmp_path: Path) -> None:
    made = publish(Store(tmp_path), "a", "1")
    (made.path / "numbers.txt").write_text("2")
    with pytest.raises(CorruptArtifact, match="delete the folder, it is made again"):
        Store(tmp_path).verify(made)


def test_the_draft_of_a_killed_process_is_not_seen_and_goes_with_the_next(tmp_path: Path) -> None:
    assert (
        subprocess.run(
            [sys.executable, "-c", KILLED, str(tmp_path)],
            cwd=Path(__file__).parents[2],
            check=False,
        ).returncode
        == -9
    )
    store = Store(tmp_path)
    assert (
        len(list(tmp_path.glob("*/*/.draft-*"))) == 1
        and store.current("datasets", "numbers") is None
    )
    publish(store, "a", "1")
    assert list(tmp_path.glob("*/*/.draft-*")) == []


def test_all_versions_of_a_name_are_listed_and_what_is_half_is_not(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.versions("datasets", "numbers") == []
    made = [publish(store, key, key) for key in ("a", "b")]
    (tmp_path / "datasets" / "numbers" / "half").mkdir()
    assert store.versions("datasets", "numbers") == made


def test_versions_of_a_remote_store_are_copied_here(tmp_path: Path) -> None:
    publish(Store("memory://versions", cache=tmp_path / "one"), "a", "1")
    [found] = Store("memory://versions", cache=tmp_path / "other").versions("datasets", "numbers")
    assert (found.path / "numbers.txt").read_text() == "1" and found.path.is_relative_to(
        tmp_path / "other"
    )
