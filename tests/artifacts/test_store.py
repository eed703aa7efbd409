"""Artifacts are published whole, once, and can be found again.

Leftovers of a killed process do not get in the way.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from artifacts.integrity import CorruptArtifact
from artifacts.manifest import Manifest
from artifacts.store import Artifact, Store

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


def test_a_published_artifact_is_found_and_current(tmp_path: Path) -> None:
    store = Store(tmp_path)
    artifact = publish(store, "a", "1")
    assert (
        store.find("datasets", "numbers", "a") == store.current("datasets", "numbers") == artifact
    )
    assert store.find("datasets", "numbers", "b") is None


def test_a_key_is_published_once(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first = publish(store, "a", "1")
    assert publish(store, "a", "2") == first
    assert (first.path / "numbers.txt").read_text() == "1"


class Late(Store):
    """A store in which another process publishes the same artifact right after the lookup."""

    def find(self, kind: str, name: str, key: str) -> Artifact | None:
        if (artifact := super().find(kind, name, key)) is None:
            publish(Store(self.root), key, "of the first")
        return artifact


def test_the_first_of_two_concurrent_publications_is_kept(tmp_path: Path) -> None:
    artifact = publish(Late(tmp_path), "a", "of the second")
    assert artifact == Store(tmp_path).current("datasets", "numbers")
    assert (artifact.path / "numbers.txt").read_text() == "of the first"
    assert [path.name for path in artifact.path.parent.iterdir() if path.is_dir()] == ["a"]


def test_a_folder_without_a_manifest_is_replaced(tmp_path: Path) -> None:
    (half := tmp_path / "datasets" / "numbers" / "a").mkdir(parents=True)
    (half / "half").touch()
    assert publish(Store(tmp_path), "a", "1").path == half
    assert not (half / "half").exists()


def test_a_changed_file_fails_verification(tmp_path: Path) -> None:
    artifact = publish(Store(tmp_path), "a", "1")
    (artifact.path / "numbers.txt").write_text("2")
    with pytest.raises(CorruptArtifact, match="numbers"):
        Store(tmp_path).verify(artifact)


def test_the_draft_of_a_killed_process_is_removed_later(tmp_path: Path) -> None:
    assert (
        subprocess.run(
            [sys.executable, "-c", KILLED, str(tmp_path)],
            cwd=Path(__file__).parents[2],
            check=False,
        ).returncode
        == -9
    )
    store = Store(tmp_path)
    assert len(list(tmp_path.glob("*/*/.draft-*"))) == 1
    assert store.current("datasets", "numbers") is None
    publish(store, "a", "1")
    assert list(tmp_path.glob("*/*/.draft-*")) == []


def test_only_complete_versions_are_listed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.versions("datasets", "numbers") == []
    artifacts = [publish(store, key, key) for key in ("a", "b")]
    (tmp_path / "datasets" / "numbers" / "half").mkdir()
    assert store.versions("datasets", "numbers") == artifacts


def test_versions_of_a_remote_store_are_cached(tmp_path: Path) -> None:
    publish(Store("memory://versions", cache=tmp_path / "one"), "a", "1")
    [artifact] = Store("memory://versions", cache=tmp_path / "other").versions(
        "datasets", "numbers"
    )
    assert (artifact.path / "numbers.txt").read_text() == "1"
    assert artifact.path.is_relative_to(tmp_path / "other")
