"""Copy an artifact to a folder of its own at any fsspec URL, and fetch one from there.

Such a folder belongs to no store: another home reads it by its URL. Its manifest is written last
and names the hash of every file, so a copy is checked against it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fsspec

from artifacts.integrity import check, files_of, manifest_of
from artifacts.manifest import NAME, Manifest
from artifacts.store import Artifact
from artifacts.upload import put


def export(artifact: Artifact, url: str) -> None:
    """Copy an artifact to a folder. Nothing is copied if the same content is there already.

    Raises FileExistsError if the folder holds anything else.
    """
    system, base = _open(url)
    if system.exists(f"{base}/{NAME}"):
        if manifest_at(url).content_hash == artifact.content_hash:
            return
        raise FileExistsError(f"{url} holds another artifact: give another folder, or remove it")
    for name, path in files_of(artifact.path).items():
        put(system, path, f"{base}/{name}")
    put(system, artifact.path / NAME, f"{base}/{NAME}")


def manifest_at(url: str) -> Manifest:
    """Return the manifest of a folder.

    Raises FileNotFoundError if it has none, or for an unknown kind of URL; and CorruptArtifact.
    """
    system, base = _open(url)
    if not system.exists(f"{base}/{NAME}"):
        raise FileNotFoundError(f"{url}: no {NAME} there")
    return manifest_of(system.cat_file(f"{base}/{NAME}"), f"{url}/{NAME}")


def fetch(url: str, manifest: Manifest, folder: Path) -> None:
    """Copy the files that the manifest lists into an empty folder, without the manifest.

    Raises CorruptArtifact if they are not those files, FileNotFoundError if one is missing.
    """
    system, base = _open(url)
    for name in manifest.files or {}:
        path = folder / name
        if not path.resolve().is_relative_to(folder.resolve()):
            raise FileNotFoundError(f"{url}/{NAME}: lists a file outside its folder: {name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        system.get_file(f"{base}/{name}", str(path))
    check(folder, manifest, fix=f"write {url} again")


def _open(url: str) -> tuple[Any, str]:
    try:
        system, base = fsspec.core.url_to_fs(url)
    except (ValueError, ImportError) as error:  # no such protocol, or its package is missing
        raise FileNotFoundError(f"{url}: {error}") from error
    return system, base.rstrip("/")
