"""Code references: the file and line of each asset's code, which the UI links to.

In a checkout with a remote on GitHub or GitLab the link opens the file at the checked out commit.
Else it opens the local file in the editor.
"""

from __future__ import annotations

import re
import subprocess
import warnings
from collections.abc import Sequence
from pathlib import Path

import dagster as dg

from pipelines.instance import ROOT


def with_source_code(
    assets: Sequence[dg.AssetsDefinition], root: Path = ROOT
) -> list[dg.AssetsDefinition]:
    """Return the assets with links to their code. root: the checkout that holds it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        linked = dg.with_source_code_references(assets)
        if remote := remote_commit(root):
            url, commit = remote
            linked = dg.link_code_references_to_git(
                linked,
                git_url=url,
                git_branch=commit,
                file_path_mapping=dg.AnchorBasedFilePathMapping(
                    local_file_anchor=root / "pyproject.toml",
                    file_anchor_path_in_repository="pyproject.toml",
                ),
            )
    return [asset for asset in linked if isinstance(asset, dg.AssetsDefinition)]


def remote_commit(root: Path) -> tuple[str, str] | None:
    """Return the web address of a checkout's remote `origin`, and its commit.

    None if the folder is not the top of a checkout, or its remote is neither GitHub nor GitLab.
    """
    if not (root / ".git").exists():
        return None
    remote = re.fullmatch(
        r"(?:\w+://)?(?:[^@/]+@)?([\w.-]*(?:github|gitlab)[\w.-]*)(?::\d+/|[:/])(.+?)(?:\.git)?",
        _git(root, "remote", "get-url", "origin"),
    )
    commit = _git(root, "rev-parse", "HEAD")
    return (f"https://{remote[1]}/{remote[2]}", commit) if remote and commit else None


def _git(root: Path, *arguments: str) -> str:
    """Return what git prints, "" if it fails or is not installed."""
    command = ["git", "-C", str(root), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except FileNotFoundError:
        return ""
