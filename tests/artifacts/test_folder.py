"""A file of a folder is read where it is, or as a copy if it is remote."""

from __future__ import annotations

from pathlib import Path

from artifacts.folder import Folder


def test_a_local_file_is_its_own_path(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("{}", encoding="utf-8")
    with Folder(str(tmp_path)).local("a.jsonl") as path:
        assert path == tmp_path / "a.jsonl"
    with Folder(str(tmp_path / "a.jsonl")).local("") as path:
        assert path == tmp_path / "a.jsonl"


def test_a_remote_file_is_copied_under_its_name_and_removed() -> None:
    folder = Folder("memory://bucket/set")
    folder.write("a.jsonl", b"{}")
    with folder.local("a.jsonl") as path:
        assert (path.name, path.read_bytes()) == ("a.jsonl", b"{}")
    assert not path.exists()


def test_files_are_found_by_several_endings(tmp_path: Path) -> None:
    for name in ("a.csv", "b.jsonl", "c.txt"):
        (tmp_path / name).touch()
    assert list(Folder(str(tmp_path)).versions((".jsonl", ".csv"))) == ["a.csv", "b.jsonl"]
