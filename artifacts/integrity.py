"""Whether the files of an artifact are those that were published.

In: an artifact's folder and its manifest. Out: the first file that differs. The hashes of files are
kept beside the folder with each file's inode, size and times, so that unchanged files are hashed
once. Manifests, pointers and scorecards are sealed: their first entry is the hash of the others.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from artifacts.atomic import write_atomic
from artifacts.hashing import MANIFEST, REMOVED, content_of, files_of, hash_file, hash_text
from artifacts.manifest import Manifest

SEAL = "sha256"
SEALED = f'{{\n "{SEAL}"'  # beginning of a sealed file
RESTORE = "restore it from a backup (`ratchet restore`)"
FIX = f"{RESTORE}, or delete the artifact's folder, and the next run makes it again"
FIX_CHAMPION = f"{RESTORE}, or take the version back (`ratchet rollback`)"

# What parsers raise: of JSON, JSON lines, parquet and gzip, and of the fields of what they return.
UNREADABLE = (
    *(ValueError, LookupError, TypeError, AttributeError),
    *(EOFError, gzip.BadGzipFile, zlib.error),
)


class CorruptArtifact(RuntimeError):
    """The files on disk are not those that the manifest names."""


def hashes_of(folder: Path, known: Path | None = None) -> dict[str, str]:
    """Return the sha256 of each file. known: file with the hashes of the last call."""
    files = files_of(folder)
    stored: dict[str, list[object]] = {}
    if known:
        with suppress(OSError, ValueError, TypeError):  # missing or damaged: all are hashed
            entries = dict(json.loads(known.read_text(encoding="utf-8")))
            stored = {name: list(entry) for name, entry in entries.items()}
    current: dict[str, list[object]] = {}
    for name, path in files.items():
        about = path.stat()
        # The time of the last change to the inode cannot be set back, as that of the file can.
        state = [about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns]
        entry = stored.get(name, [])
        current[name] = [*state, entry[-1] if entry[:-1] == state else hash_file(path)]
    if known and current != stored:
        with suppress(OSError):  # a home that may only be read
            write_atomic(known, json.dumps(current))
    return {name: str(entry[-1]) for name, entry in current.items()}


def check(folder: Path, manifest: Manifest, known: Path | None = None, fix: str = FIX) -> None:
    """Raise CorruptArtifact for a file that was changed, added or removed after publishing.

    known: file with kept hashes. If they differ from the manifest, all files are hashed again. The
    hash over all files must be the content hash, unless that hash has another meaning (scores leave
    out measured times).
    """
    hashes = hashes_of(folder, known)
    wrong = sorted(name for name, _ in manifest.files.items() ^ hashes.items())
    if not wrong and (manifest.kind == "scores" or content_of(hashes) == manifest.content_hash):
        return
    if known:
        with suppress(OSError):
            known.unlink()
        return check(folder, manifest, fix=fix)
    if not wrong:
        raise changed(folder, fix=fix)
    what = "was changed" if wrong[0] in hashes else "is missing"
    raise changed(folder / wrong[0], what if wrong[0] in manifest.files else "was added", fix)


def check_champion(folder: Path, content: str, known: Path | None = None) -> None:
    """Raise CorruptArtifact unless a champion's folder has the content that the ledger names."""
    if (folder / REMOVED).exists():
        raise changed(folder, "was removed, to save space,", FIX_CHAMPION)
    if (folder / MANIFEST).exists():
        manifest = read_manifest(folder / MANIFEST)
        check(folder, manifest, known, FIX_CHAMPION)
        actual = manifest.content_hash
    else:
        actual = content_of(hashes_of(folder, known))
    if actual != content:
        if known:  # the kept hashes may be wrong
            with suppress(OSError):
                known.unlink()
            return check_champion(folder, content)
        what = "was changed" if folder.is_dir() else "is missing"
        raise changed(folder, what, FIX_CHAMPION)


def changed(path: Path | str, what: str = "was changed", fix: str = FIX) -> CorruptArtifact:
    """Return the error for a file or folder of an artifact."""
    return CorruptArtifact(f"{path}: {what} after it was written: {fix}")


@contextmanager
def reading(path: Path | str, fix: str = FIX) -> Iterator[None]:
    """Raise CorruptArtifact, which names the file, if what it holds cannot be read or parsed."""
    try:
        yield
    except UNREADABLE as error:
        raise changed(path, "cannot be read; it was changed", fix) from error


def seal(text: str) -> str:
    """Return a JSON object, indented by 1, with the sha256 of its lines as its first entry."""
    return _sealed(text.removeprefix("{\n") + "\n")


def unseal(text: str, path: Path | str, fix: str = FIX) -> dict[str, Any]:
    """Return the JSON object of a sealed file, without its seal.

    Raises ValueError for text that is no JSON, and CorruptArtifact for an object that has no seal
    or differs from it.
    """
    data = json.loads(text)
    if text != _sealed(text.partition(",\n")[2]):
        raise changed(path, fix=fix)
    return {key: value for key, value in data.items() if key != SEAL}


def _sealed(body: str) -> str:
    return f'{SEALED}: "{hash_text(body)}",\n{body}'


def check_files(folder: Path, hashes: Mapping[str, str], fix: str = FIX) -> None:
    """Raise CorruptArtifact for the first of these files that is missing or has another hash."""
    for name, expected in hashes.items():
        path = folder / name
        if not path.exists():
            raise changed(path, "is missing; it was removed", fix)
        if hash_file(path) != expected:
            raise changed(path, fix=fix)


def manifest_of(text: bytes, path: Path | str) -> Manifest:
    """Return a manifest. Raises CorruptArtifact for one that was changed."""
    with reading(path):
        return Manifest.model_validate(unseal(text.decode(), path))


def read_manifest(path: Path) -> Manifest:
    """Return the manifest in a file. Raises CorruptArtifact for one that was changed."""
    return manifest_of(path.read_bytes(), path)
