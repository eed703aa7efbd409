"""A second name for the files of an artifact, which costs no space."""

from __future__ import annotations

import shutil
from pathlib import Path

from artifacts.hashing import MANIFEST


def link_files(source: Path, target: Path) -> None:
    """Give a folder's files a second name each in an existing folder; its manifest is left out.
    Files are copied where the file system has no links, or is another one.
    """
    shutil.copytree(
        source,
        target,
        dirs_exist_ok=True,
        ignore=shutil.ignore_patterns(MANIFEST),
        copy_function=_link,
    )


def _link(source: str, target: str) -> None:
    try:
        Path(target).hardlink_to(source)
    except OSError:
        shutil.copy2(source, target)
