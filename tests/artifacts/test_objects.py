"""Objects are found by their content, whole, and none that was changed is returned."""

from __future__ import annotations

import hashlib
from pathlib import Path

import fsspec
import pytest

from artifacts.folder import Folder
from artifacts.integrity import CorruptArtifact
from artifacts.objects import Objects


def stored(folder: Folder, tmp_path: Path, content: bytes = b"weights") -> str:
    """Store the content; return its hash."""
    path, name = tmp_path / "file", hashlib.sha256(content).hexdigest()
    path.write_bytes(content)
    Objects(folder).put(path, name)
    return name


def test_an_object_is_the_file_that_was_stored(tmp_path: Path) -> None:
    folder = Folder("memory://objects-of-one")
    content = stored(folder, tmp_path)
    with Objects(folder).local(content, tmp_path, "a") as copy:
        assert copy.read_bytes() == b"weights"


@pytest.mark.parametrize("position", [0, 3, 6])
def test_a_flipped_byte_is_refused_by_name(tmp_path: Path, position: int) -> None:
    folder = Folder(f"memory://flipped-{position}")
    content = stored(folder, tmp_path)
    system = fsspec.filesystem("memory")
    [path] = system.find(f"/flipped-{position}")
    changed = bytearray(b"weights")
    changed[position] ^= 1
    system.pipe_file(path, bytes(changed))
    with pytest.raises(CorruptArtifact, match=r"^model \(.* was changed"):
        Objects(folder).check(content, "model")
    objects = Objects(folder).local(content, tmp_path, "model")
    with pytest.raises(CorruptArtifact, match=r"^model \(.* was changed"), objects:
        pass


def test_a_removed_object_is_named(tmp_path: Path) -> None:
    with pytest.raises(CorruptArtifact, match=r"^model \(.* is missing"):
        Objects(Folder("memory://nothing")).check("0" * 64, "model")


def test_a_part_of_an_object_is_not_the_object(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path / "there"))
    content = stored(folder, tmp_path)
    assert Objects(folder).has(content, 7)
    [path] = (tmp_path / "there").rglob(content)
    path.write_bytes(b"weig")
    assert not Objects(folder).has(content, 7)


def test_an_interrupted_upload_leaves_no_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder(str(tmp_path / "there"))

    def interrupt(self: Path, target: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        stored(folder, tmp_path)
    assert not Objects(folder).has(hashlib.sha256(b"weights").hexdigest(), 7)


def test_what_nothing_names_is_removed(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path / "there"))
    kept, other = (stored(folder, tmp_path, text) for text in (b"kept", b"other"))
    assert Objects(folder).remove_all_but({kept}) == 1
    assert Objects(folder).has(kept, 4)
    assert not Objects(folder).has(other, 5)
