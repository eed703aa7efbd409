"""An artifact at a URL is fetched with the same content, or refused."""

from __future__ import annotations

from pathlib import Path

import fsspec
import pytest

from artifacts.hashing import content_of
from artifacts.integrity import CorruptArtifact, hashes_of
from artifacts.manifest import Manifest
from artifacts.portable import export, fetch, manifest_at
from artifacts.store import Artifact, Store
from tests.web_server import served


def published(folder: Path, text: str) -> Artifact:
    store = Store(folder)
    with store.draft("datasets", "d") as draft:
        (draft / "rows").mkdir()
        (draft / "rows" / "a.json").write_text(text, encoding="utf-8")
        return store.publish(draft, Manifest(kind="datasets", name="d", key="k", content_hash=""))


@pytest.mark.parametrize("scheme", ["file://", "memory://", ""])
def test_a_fetched_artifact_has_the_same_content(tmp_path: Path, scheme: str) -> None:
    url = f"{scheme}{tmp_path}/there"
    artifact = published(tmp_path / "home", "[1]")
    export(artifact, url)
    export(artifact, url)  # the same again changes nothing
    manifest, folder = manifest_at(url), tmp_path / "here"
    folder.mkdir()
    fetch(url, manifest, folder)
    assert content_of(hashes_of(folder)) == artifact.content_hash == manifest.content_hash
    with pytest.raises(FileExistsError, match="there"):
        export(published(tmp_path / "other", "[2]"), url)


def test_an_artifact_is_fetched_from_a_web_server(tmp_path: Path) -> None:
    artifact, folder = published(tmp_path / "home", "[1]"), tmp_path / "here"
    export(artifact, f"{tmp_path}/there")
    folder.mkdir()
    with served(tmp_path) as url:
        manifest = manifest_at(f"{url}/there")
        fetch(f"{url}/there/", manifest, folder)
        with pytest.raises(FileNotFoundError, match="nowhere"):
            manifest_at(f"{url}/nowhere")
        (tmp_path / "there" / "rows" / "a.json").unlink()
        with pytest.raises(FileNotFoundError, match=r"rows/a\.json"):
            fetch(f"{url}/there", manifest, tmp_path / "two")
    with pytest.raises(OSError, match=r"127\.0\.0\.1"):
        manifest_at(f"{url}/there")
    assert content_of(hashes_of(folder)) == artifact.content_hash


def test_a_changed_or_missing_file_is_refused(tmp_path: Path) -> None:
    export(published(tmp_path / "home", "[1]"), "memory://changed")
    system = fsspec.filesystem("memory")
    system.pipe_file("/changed/rows/a.json", b"[2]")
    manifest = manifest_at("memory://changed")
    with pytest.raises(CorruptArtifact, match=r"rows/a\.json"):
        fetch("memory://changed", manifest, tmp_path / "one")
    system.rm_file("/changed/rows/a.json")
    with pytest.raises(FileNotFoundError, match=r"rows/a\.json"):
        fetch("memory://changed", manifest, tmp_path / "two")


@pytest.mark.parametrize("url", ["nosuch://x", "memory://empty", "/nowhere/at/all"])
def test_a_url_without_an_artifact_is_named(url: str) -> None:
    with pytest.raises(FileNotFoundError, match=url):
        manifest_at(url)


def test_a_manifest_cannot_name_a_file_elsewhere(tmp_path: Path) -> None:
    fsspec.filesystem("memory").pipe_file("/out", b"x")
    manifest = Manifest(
        kind="datasets", name="d", key="k", content_hash="", files={"../../out": "0"}
    )
    with pytest.raises(FileNotFoundError, match=r"\.\./\.\./out"):
        fetch("memory://a/b", manifest, tmp_path)
