"""Verify the files of a home that are not artifacts: run records, trainings, caches, journals.

In: the home's folder. Out: the files with a hash of their own, the lines with one, and the files
that have none. Artifacts have manifests (`Store.verify_all`), the ledger has its chain of hashes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from artifacts.hashing import REMOVED, hash_file
from artifacts.integrity import RESTORE, SEALED, changed, check_files, reading, unseal
from artifacts.json_lines import HASH, row_of
from artifacts.store import KINDS

SAVE = "whole"  # seal of a save of a training: its files with their hashes
COPIES = "problem_files"  # copies of sources, each in a folder with the hash of its content
# Artifacts and the copies of a remote store's; the databases; other programs' own files.
ELSEWHERE = {
    *KINDS,
    "cache",
    "promotions.db",
    "records.db",
    "profile",
    "dagster",
    "ray",
    "smoke",
    "mlruns",
    "wandb",
}


@dataclass
class VerifiedHome:
    """The result of verifying a home's files.

    files: relative names of those with a hash. lines: number of those with one.
    """

    files: list[Path] = field(default_factory=list)
    lines: int = 0
    without_hash: list[Path] = field(default_factory=list)


def verify_records(home: Path) -> VerifiedHome:
    """Verify the files. Raises CorruptArtifact for the first one that was changed.

    A sealed file starts with its hash. Either every line of a file has a hash, or none. What a
    `done.json`, a candidate's manifest or a save's seal lists is verified with it.
    """
    verified, listed = VerifiedHome(), set()
    for path in _files(home):
        name = path.relative_to(home)
        if name.parts[0] == COPIES:
            _check_copy(path)
            verified.files.append(name)
        elif path.name == SAVE or (path.suffix == ".json" and _is_sealed(path)):
            content = _read(path)
            files = content if path.name == SAVE else content.get("files") or {}
            if path.name == REMOVED:  # they were removed on purpose
                files = {}
            check_files(path.parent, files, RESTORE)
            verified.files.append(name)
            listed |= {name.parent / each for each in files}
        elif path.suffix == ".jsonl" and (lines := _hashed_lines(path)):
            verified.lines += lines
        else:
            verified.without_hash.append(name)
    verified.files += sorted(listed)
    verified.without_hash = [name for name in verified.without_hash if name not in listed]
    return verified


def _files(home: Path) -> Iterator[Path]:
    """Yield the files in the home, sorted; hidden ones are caches of this machine, and locks."""
    for folder, folders, names in os.walk(home):
        at_root = Path(folder) == home
        hidden = ELSEWHERE if at_root else set()
        folders[:] = sorted(name for name in folders if name not in hidden and name[0] != ".")
        for name in sorted(names):
            path = Path(folder, name)
            if name not in hidden and name[0] != "." and path.stat().st_size:
                yield path


def _is_sealed(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(len(SEALED)).decode("utf-8", "replace")
    # With one character changed it is a seal that was damaged.
    return len(head) == len(SEALED) and sum(map(str.__ne__, head, SEALED)) <= 1


def _read(path: Path) -> dict[str, Any]:
    with reading(path, RESTORE):
        text = path.read_text(encoding="utf-8")
        return dict(json.loads(text)) if path.name == SAVE else unseal(text, path, RESTORE)


def _hashed_lines(path: Path) -> int:
    """Return the number of lines; 0 if none has a hash. A last line that a kill truncated is left
    out.
    """
    key, number = f'"{HASH}"'.encode(), 0
    with path.open("rb") as file:
        if not any(key in line for line in file):
            return 0
        file.seek(0)
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return number - 1
            try:
                row_of(line)
            except (ValueError, TypeError) as error:
                raise changed(f"{path}: line {number}", fix=RESTORE) from error
    return number


def _check_copy(path: Path) -> None:
    """Raise CorruptArtifact unless the copy's folder is named after its content."""
    if not hash_file(path).startswith(path.parent.name):
        raise changed(path, fix=RESTORE)
