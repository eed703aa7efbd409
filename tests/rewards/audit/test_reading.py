"""Folders, Dockerfiles and Git stores of a task set are read without running or following them."""

from __future__ import annotations

import os
import subprocess
import zlib
from pathlib import Path

import pytest

from problems.task_folders.dockerfile import installed, read_image
from problems.task_folders.folder import read_folder
from rewards.audit.git_objects import Unreadable, objects, stores


def git(repository: Path, *words: str) -> None:
    own = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "gc.auto=0"]
    subprocess.run(["git", *own, *words], cwd=repository, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Three commits; the last one was undone, and its blob is only in the store."""
    git(tmp_path, "init", "-q", "-b", "main")
    for number in (1, 2, 3):
        lines = "".join(f"line {line}\n" for line in range(200 * number))
        (tmp_path / "file").write_text(f"{lines}end {number}\n")
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-qm", f"commit {number}")
    git(tmp_path, "reset", "-q", "--hard", "HEAD~1")
    return tmp_path


@pytest.mark.parametrize("packed", [True, False])
def test_undone_commits_are_read_from_a_store(repository: Path, packed: bool) -> None:
    if packed:
        git(repository, "gc", "-q")
    files = read_folder(repository).files
    [store] = stores(files)
    blobs = [content for kind, content in objects(files, store) if kind == "blob"]
    assert sorted(blob[-2:-1] for blob in blobs) == [b"1", b"2", b"3"]


@pytest.mark.parametrize("cut", [12, 40, -30])
def test_a_broken_pack_is_named_as_such(repository: Path, cut: int) -> None:
    git(repository, "gc", "-q")
    files = dict(read_folder(repository).files)
    pack = next(path for path in files if path.endswith(".pack"))
    files[pack] = files[pack][:cut]
    with pytest.raises(Unreadable):
        list(objects(files, ".git/"))


def test_an_object_that_unpacks_to_much_more_is_refused() -> None:
    bomb = zlib.compress(b"blob 999999999\0" + bytes(20 << 20), 1)
    with pytest.raises(Unreadable):
        list(objects({"objects/aa/" + "0" * 38: bomb}, ""))


def test_links_and_devices_are_skipped_by_name(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    task = tmp_path / "task"
    (task / "tests").mkdir(parents=True)
    (task / "tests" / "test.sh").write_text("exit 0\n")
    (task / "file").symlink_to(tmp_path / "secret")
    (task / "folder").symlink_to(tmp_path)
    os.mkfifo(task / "pipe")
    folder = read_folder(task)
    assert set(folder.files) == {"tests/test.sh"}
    assert folder.skipped == {"file": "a link", "folder": "a link", "pipe": "no plain file"}


DOCKERFILE = """\
FROM python:3.12 AS builder
WORKDIR /build
COPY . all/
# a comment
FROM ubuntu:24.04
RUN apt-get update && \\
    apt-get install -y sqlite3 python3-pip \\
    && rm -rf /var/lib/apt/lists/*
RUN <<EOF
pip install pandas==2.0 'requests>=2'
EOF
WORKDIR /app
COPY data/ ./in/
COPY ["one file.txt", "/opt/"]
COPY --from=builder /build/all/secret.txt /srv/secret.txt
"""
CONTEXT = {"data/a.csv": b"a", "one file.txt": b"1", "secret.txt": b"s", "data/b.log": b"b"}


def test_the_files_of_an_image_follow_its_dockerfile() -> None:
    image = read_image(DOCKERFILE, {**CONTEXT, ".dockerignore": b"*.log\ndata/*.log\n"})
    assert image.files == {
        "/app/in/a.csv": b"a",
        "/opt/one file.txt": b"1",
        "/srv/secret.txt": b"s",
    }
    assert (image.base, image.workdir) == ("ubuntu:24.04", "/app")


def test_installed_packages_are_read_from_scripts() -> None:
    runs = "\n".join(read_image(DOCKERFILE, {}).runs)
    assert installed(runs) == {"sqlite3", "python3-pip", "pandas"} | {"requests"} & installed(runs)
