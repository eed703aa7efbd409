"""Folders that programs filled are measured and removed, whatever they contain.

Foreign folders are left alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sandbox import folders
from sandbox.sandbox import Sandbox, SandboxConfig
from sandbox.worker.slot import sweep


def deepen(folder: Path, levels: int) -> None:
    """Create nested folders as a program does it: step by step, so that no path is too long."""
    script = (
        f"import os\nfor _ in range({levels}):\n    os.mkdir('d')\n    os.chdir('d')\n"
        "open('file', 'w').write('x' * 5000)"
    )
    subprocess.run([sys.executable, "-c", script], cwd=folder, check=True)


@pytest.fixture
def folder() -> Path:
    """Return a folder in memory, where creating thousands of folders is fast."""
    return Path(tempfile.mkdtemp(dir="/dev/shm"))


def test_a_folder_of_any_depth_is_removed(folder: Path) -> None:
    deepen(folder, 3_000)
    folders.remove(str(folder))
    assert not folder.exists()


def test_deeply_nested_files_count_in_the_size(folder: Path) -> None:
    deepen(folder, 2_000)
    assert 5000 <= folders.size(str(folder), 2_001) < folders.TOO_MUCH
    assert folders.size(str(folder), 2_000) == folders.TOO_MUCH
    folders.remove(str(folder))


def test_locked_folders_are_removed_and_links_are_not_followed(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "kept").write_text("x")
    for name in ("a", "a/b", "a/c"):
        (folder / name).mkdir()
    (folder / "a/b/link").symlink_to(tmp_path)
    (folder / "link").symlink_to(tmp_path)
    (folder / "a/c/file").write_text("x")
    for name in ("a/b", "a/c", "a"):
        (folder / name).chmod(0)
    folders.remove(str(folder))
    assert not folder.exists()
    assert (tmp_path / "kept").exists()


def test_a_link_in_place_of_a_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "kept").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "full")
    folders.remove(str(tmp_path / "link"))
    assert (tmp_path / "full" / "kept").exists()


@pytest.mark.slow
def test_leftover_folders_do_not_prevent_a_start(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    left = folder / f"ratchet-scratch-{dead.pid}-x"
    left.mkdir()
    deepen(left, 3_000)
    alive = folder / f"ratchet-scratch-{os.getpid()}-x"
    alive.mkdir()
    # folders of other users, in a shared folder
    for name in (
        "ratchet-scratch-",
        "ratchet-scratch-x-y",
        f"ratchet-scratch-{10**30}-x",
    ):
        (folder / name).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    with Sandbox(SandboxConfig(workers=1)):
        pass
    assert not left.exists()
    assert alive.exists()
    assert (folder / "ratchet-scratch-x-y").exists()
    folders.remove(str(folder))


def test_sweeping_a_missing_folder_is_no_error(tmp_path: Path) -> None:
    sweep(tmp_path / "gone")
