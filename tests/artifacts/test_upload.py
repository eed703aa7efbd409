"""An upload is verified after it has arrived."""

from __future__ import annotations

from pathlib import Path

import pytest
from fsspec.implementations.local import LocalFileSystem

from artifacts.folder import TRIES, CorruptUpload, Folder
from artifacts.manifest import Manifest
from artifacts.store import Store
from tests.artifacts.object_store import object_store


class Torn(LocalFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A file system that loses the last byte of the first `times` uploads."""

    def __init__(self, times: int) -> None:
        super().__init__(skip_instance_cache=True)
        self.times = times

    def put_file(self, lpath: str, rpath: str, **_: object) -> None:
        content = Path(lpath).read_bytes()
        Path(rpath).write_bytes(content[:-1] if self.times else content)
        self.times = max(0, self.times - 1)


def torn(folder: Path, times: int) -> Folder:
    """Return a folder on that file system."""
    there = Folder(str(folder))
    there.__dict__["_place"] = Torn(times), str(folder)
    return there


def test_a_truncated_upload_is_repeated(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"weights")
    torn(tmp_path / "there", TRIES - 1).put(tmp_path / "a", "a")
    assert (tmp_path / "there" / "a").read_bytes() == b"weights"


def test_an_upload_that_never_arrives_complete_raises(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"weights")
    with pytest.raises(CorruptUpload, match="there/a"):
        torn(tmp_path / "there", TRIES).put(tmp_path / "a", "a")


@pytest.mark.slow
def test_an_artifact_published_to_s3_is_found_by_another_machine(tmp_path: Path) -> None:
    with object_store("artifacts") as url:
        here, there = Store(url, cache=tmp_path / "here"), Store(url, cache=tmp_path / "there")
        with here.draft("checkpoints", "model") as folder:
            (folder / "model.safetensors").write_bytes(bytes(100_000))
            published = here.publish(
                folder, Manifest(kind="checkpoints", name="model", key="k", content_hash="")
            )
        fetched = there.require("checkpoints", "model")
        assert fetched.manifest == published.manifest
        assert fetched.path != published.path
        there.verify(fetched)
