"""Links from an asset to its code."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pipelines.source_code import remote_commit


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("git@github.com:owner/name.git", "https://github.com/owner/name"),
        (
            "https://user:word@gitlab.example.org/a/b/name.git",
            "https://gitlab.example.org/a/b/name",
        ),
        ("ssh://git@gitlab.example.org:2222/a/name", "https://gitlab.example.org/a/name"),
    ],
)
def test_a_remote_has_a_web_address(tmp_path: Path, remote: str, address: str) -> None:
    checkout(tmp_path, remote)
    found = remote_commit(tmp_path)
    assert found
    assert found[0] == address
    assert len(found[1]) == 40


def test_code_links_to_no_other_checkout(tmp_path: Path) -> None:
    checkout(tmp_path, "git@github.com:owner/name.git")
    (tmp_path / "site-packages").mkdir()
    assert remote_commit(tmp_path / "site-packages") is None


def checkout(folder: Path, remote: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for arguments in (
        ["init", "-q"],
        ["remote", "add", "origin", remote],
        [*identity, "commit", "-q", "--allow-empty", "-m", "first"],
    ):
        subprocess.run(["git", "-C", str(folder), *arguments], check=True)
