"""Content hashes: the same bytes or the same plain data give the same name on every machine."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any


def hash_data(data: Any) -> str:
    """Return the sha256 of canonical JSON. Raises TypeError for anything that is not plain data."""
    return hash_text(json.dumps(data, sort_keys=True, ensure_ascii=True, separators=(",", ":")))


def hash_text(text: str) -> str:
    """Return the sha256 of a text, which may have lone surrogates."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class HashedFile:
    """A new binary file that is hashed while it is written, so that nobody has to read it again.

    A context manager: at its end the file is on the disk.
    """

    def __init__(self, path: Path) -> None:
        self._file, self._sha256 = path.open("wb"), hashlib.sha256()

    def write(self, data: bytes | memoryview) -> int:
        self._sha256.update(data)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()

    @property
    def sha256(self) -> str:
        """Return the hash of all bytes written so far."""
        return self._sha256.hexdigest()

    def __enter__(self) -> HashedFile:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        with self._file:
            if kind is None:
                self._file.flush()
                os.fsync(self._file.fileno())


MANIFEST = "manifest.json"
REMOVED = "manifest.removed.json"  # of an artifact whose files were removed, for provenance
MEASURED = ("measured.json",)  # files whose values differ between equal runs


def files_of(folder: Path) -> dict[str, Path]:
    """Return an artifact's files by relative name, without its manifest."""
    return {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path != folder / MANIFEST
    }


def hash_folder(folder: Path) -> str:
    """Return the content hash of a folder's files."""
    return content_of({name: hash_file(path) for name, path in files_of(folder).items()})


def content_of(hashes: dict[str, str]) -> str:
    """Return the content hash of files with these hashes: measured values do not count."""
    return folder_hash(
        {name: hashes[name] for name in hashes if name.rpartition("/")[2] not in MEASURED}
    )


def folder_hash(hashes: dict[str, str]) -> str:
    """Return the hash of a folder from the hashes of its files by relative name."""
    return hash_data([[name, hashes[name]] for name in sorted(hashes, key=_parts)])


def _parts(name: str) -> tuple[str, ...]:
    return tuple(name.split("/"))
