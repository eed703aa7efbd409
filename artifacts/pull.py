"""Artifacts of an object store on a machine that did not make them: copied when they are named.

In: a folder that a record names, in the store's cache here. Out: the same folder, filled.
"""

from __future__ import annotations

from pathlib import Path

from artifacts.hashing import MANIFEST
from artifacts.integrity import FIX_CHAMPION, CorruptArtifact, check_champion
from artifacts.store import Store


def pull(store: Store, folder: Path | str) -> Path:
    """Return an artifact's folder, copied from the object store if it is not on this machine.
    Another folder, or one that the object store has no more, is returned as it is.
    """
    folder = Path(folder)
    if not (folder / MANIFEST).exists() and (address := _address(store, folder)):
        store.find(*address)
    return folder


def holds(store: Store, folder: Path | str) -> bool:
    """Whether an artifact is in the object store, on this machine or not."""
    address = _address(store, Path(folder))
    return address is not None and store.folder.has(f"{'/'.join(address)}/{MANIFEST}")


def pull_champion(
    store: Store, folder: Path | str, content: str, known: Path | None = None
) -> Path:
    """Return a champion's folder, copied here if needed. Raises CorruptArtifact unless it has the
    content that the ledger names. known: file with kept hashes.
    """
    folder = pull(store, folder)
    try:
        check_champion(folder, content, known)
    except CorruptArtifact as error:
        if not holds(store, folder):
            raise
        fix = f"delete {folder}, and it is copied again from {store.root}"
        raise CorruptArtifact(str(error).replace(FIX_CHAMPION, fix)) from error
    return folder


def _address(store: Store, folder: Path) -> tuple[str, str, str] | None:
    """Return kind, name and key of an artifact of an object store, from its place here."""
    folder, cache = folder.resolve(), store.cache.resolve()  # a moved home has links to it
    if store.is_local or not folder.is_relative_to(cache):
        return None
    parts = folder.relative_to(cache).parts
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 else None
