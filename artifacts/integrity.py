"""Whether the files of an artifact are those that were published.

In: an artifact's folder and its manifest. Out: the first file that differs. The hashes of files are
kept beside the folder with each file's inode, size and times, so that unchanged files are hashed
once; `fresh` hashes all of them again.
"""

from __future__ import annotations

import json
from pathlib import Path

from artifacts.atomic import write_atomic
from artifacts.hashing import MEASURED, folder_hash, hash_file
from artifacts.manifest import NAME, Manifest


class CorruptArtifact(RuntimeError):
    """The files on disk are not those that the manifest names."""


def files_of(folder: Path) -> dict[str, Path]:
    """Return an artifact's files by relative name, without its manifest."""
    return {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path != folder / NAME
    }


def hashes_of(folder: Path, known: Path | None = None) -> dict[str, str]:
    """Return the sha256 of each file. known: file with the hashes of the last call."""
    files = files_of(folder)
    stored: dict[str, list[object]] = {}
    if known and known.exists():
        stored = json.loads(known.read_text(encoding="utf-8"))
    current: dict[str, list[object]] = {}
    for name, path in files.items():
        about = path.stat()
        # The time of the last change to the inode cannot be set back, as that of the file can.
        state = [about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns]
        entry = stored.get(name, [])
        current[name] = [*state, entry[-1] if entry[:-1] == state else hash_file(path)]
    if known and current != stored:
        write_atomic(known, json.dumps(current))
    return {name: str(entry[-1]) for name, entry in current.items()}


def content_of(hashes: dict[str, str]) -> str:
    """Return the content hash of files with these hashes: measured values do not count."""
    return folder_hash({n: h for n, h in hashes.items() if Path(n).name not in MEASURED})


def check(folder: Path, manifest: Manifest, known: Path | None = None) -> None:
    """Raise CorruptArtifact for a file that was changed, added or removed after publishing.

    A manifest of an older version has no list of files: there the hash over all files must be its
    content hash, unless that hash has another meaning (scores leave out measured times).
    """
    hashes = hashes_of(folder, known)
    if manifest.files is None:
        content = content_of(hashes)
        if content != manifest.content_hash and manifest.kind != "scores":
            raise _corrupt(folder, f"files were changed ({content[:12]})", manifest)
        return
    for name in sorted(manifest.files.keys() | hashes.keys()):
        expected, actual = manifest.files.get(name), hashes.get(name)
        if expected != actual:
            what = "is missing" if not actual else "was added" if not expected else "was changed"
            raise _corrupt(folder / name, what, manifest)


def _corrupt(path: Path, what: str, manifest: Manifest) -> CorruptArtifact:
    return CorruptArtifact(
        f"{path}: {what} after {manifest.name} was made: restore it from a backup, or delete the "
        "artifact's folder, and the next run makes it again"
    )
