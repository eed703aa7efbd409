"""A sealed file is read as it was written, or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from artifacts.hashing import content_of, hash_folder
from artifacts.integrity import CorruptArtifact, check_champion, hashes_of, seal, unseal

DATA = {"kind": "scores", "files": {"a": "b"}, "number": 3, "note": ""}
TEXT = seal(json.dumps(DATA, indent=1))


@pytest.mark.parametrize("bit", range(8))
def test_no_flipped_bit_of_a_sealed_file_is_read(bit: int) -> None:
    content = TEXT.encode()
    for at in range(len(content)):
        flipped = bytearray(content)
        flipped[at] ^= 1 << bit
        try:
            data = unseal(flipped.decode(), "file.json")
        except (ValueError, CorruptArtifact):
            continue
        assert data == DATA, f"byte {at}"
        pytest.fail(f"byte {at} is not covered")


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(DATA, indent=1),
        TEXT.replace(TEXT.split('"')[3], ""),
        TEXT.replace("sha256", "sh_2_6"),
        TEXT.replace('",\n', '", "added": 1,\n', 1),
        "[]",
    ],
    ids=["no seal", "an empty seal", "another key", "an entry beside the seal", "no object"],
)
def test_text_without_a_seal_of_all_its_entries_is_not_read(text: str) -> None:
    with pytest.raises(CorruptArtifact):
        unseal(text, "file.json")


@pytest.mark.parametrize("kept", ['{"weights": 5}', "[]", "{", '{"weights": ["other"]}'])
def test_damaged_kept_hashes_are_made_again(tmp_path: Path, kept: str) -> None:
    folder, known = tmp_path / "folder", tmp_path / "hashes.json"
    folder.mkdir()
    (folder / "weights").write_text("1", encoding="utf-8")
    known.write_text(kept, encoding="utf-8")
    assert hashes_of(folder, known) == hashes_of(folder)


def test_wrong_kept_hashes_do_not_condemn_a_champion_without_a_manifest(tmp_path: Path) -> None:
    folder, known = tmp_path / "folder", tmp_path / "hashes.json"
    folder.mkdir()
    (folder / "weights").write_text("1", encoding="utf-8")
    hashes = hashes_of(folder, known)
    text = known.read_text(encoding="utf-8")
    known.write_text(text.replace(hashes["weights"], "0" * 64), encoding="utf-8")
    check_champion(folder, content_of(hashes), known)


def test_a_folder_has_one_content_hash_whatever_its_files_are_called(tmp_path: Path) -> None:
    for name in ("a.txt", "manifest.json", "measured.json", "part/manifest.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    before = hash_folder(tmp_path)
    assert before == content_of(hashes_of(tmp_path))
    (tmp_path / "manifest.json").write_text("other")
    assert hash_folder(tmp_path) == before
    (tmp_path / "part" / "manifest.json").write_text("other")
    assert hash_folder(tmp_path) != before
