"""Copy an artifact to a folder of its own at any fsspec URL, and fetch one from there.

Such a folder belongs to no store: another home reads it by its URL. Its manifest is written last
and names the hash of every file, so a copy is checked against it.
"""

from __future__ import annotations

from pathlib import Path

from artifacts.folder import Folder
from artifacts.hashing import MANIFEST, files_of
from artifacts.integrity import check, manifest_of
from artifacts.manifest import Manifest
from artifacts.store import Artifact


def export(artifact: Artifact, url: str) -> None:
    """Copy an artifact to a folder. Nothing is copied if the same content is there already.

    Raises FileExistsError if the folder holds anything else.
    """
    folder = Folder(url)
    if folder.has(MANIFEST):
        if manifest_at(url).content_hash == artifact.content_hash:
            return
        raise FileExistsError(f"{url} holds another artifact: give another folder, or remove it")
    for name, path in files_of(artifact.path).items():
        folder.put(path, name)
    folder.put(artifact.path / MANIFEST, MANIFEST)


def manifest_at(url: str) -> Manifest:
    """Return the manifest of a folder.

    Raises FileNotFoundError if it has none, or for an unknown kind of URL; and CorruptArtifact.
    """
    folder = Folder(url)
    if not folder.has(MANIFEST):
        raise FileNotFoundError(f"{url}: no {MANIFEST} there")
    return manifest_of(folder.read(MANIFEST), f"{url}/{MANIFEST}")


def fetch(url: str, manifest: Manifest, target: Path) -> None:
    """Copy the files that the manifest lists into an empty folder, without the manifest.

    Raises CorruptArtifact if they are not those files, FileNotFoundError if one is missing.
    """
    folder = Folder(url)
    for name in manifest.files or {}:
        path = target / name
        if not path.resolve().is_relative_to(target.resolve()):
            raise FileNotFoundError(f"{url}/{MANIFEST}: lists a file outside its folder: {name}")
        folder.get(name, path)
    check(target, manifest, fix=f"write {url} again")
