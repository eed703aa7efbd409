"""A file of JSON lines that survives kills.

One process holds it at a time, every append is written to disk, and a torn last line is cut off.
Each line carries its own hash, so that a changed line is noticed.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from artifacts.hashing import hash_text
from artifacts.integrity import CorruptArtifact

HASH = "line_hash"


def line_of(row: Mapping[str, Any]) -> bytes:
    """Return an object as one line with its hash, the last entry."""
    text = json.dumps(row)
    comma = ", " if row else ""
    return f'{text[:-1]}{comma}"{HASH}": "{_hash(text)}"}}\n'.encode()


def row_of(line: bytes) -> dict[str, Any]:
    """Return the object in a line. Raises TypeError and ValueError for text that is no JSON object,
    and for an object that has no hash or differs from it.
    """
    row = json.loads(line)
    if not isinstance(row, dict):
        raise TypeError("not an object")
    text = line.decode().rpartition(f'"{HASH}"')[0].removesuffix(", ") + "}"
    if row.pop(HASH, None) != _hash(text):
        raise ValueError("it was changed after it was written")
    return row


def _hash(text: str) -> str:
    return hash_text(text)[:16]


class JsonLines:
    """A file of JSON lines. Opening it reads every line; then lines can be appended.

    A second process waits until the first has closed it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def open(self, read: Callable[[dict[str, Any]], None], fix: str) -> None:
        """Lock the file and pass each line's object to `read`, in order.

        Raises CorruptArtifact with the line and the fix if a line is not an object, or `read` finds
        it broken; the file is closed then.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file: BinaryIO = self.path.open("a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX)
            self._read_all(read, fix)
        except BaseException:
            self.close()
            raise

    def _read_all(self, read: Callable[[dict[str, Any]], None], fix: str) -> None:
        """Pass each whole line's object to `read`, and cut off a torn last line."""
        self._file.seek(0)
        valid_bytes = 0
        for number, line in enumerate(self._file, 1):
            if not line.endswith(b"\n"):
                break
            try:
                read(row_of(line))
            except (ValueError, TypeError, KeyError) as error:
                raise CorruptArtifact(
                    f"{self.path}: line {number}: not a valid line ({error}): {fix}"
                ) from error
            valid_bytes += len(line)
        self._file.truncate(valid_bytes)

    def append(self, rows: Iterable[Mapping[str, Any]], synced: bool = True) -> None:
        """Write all rows at once, so that they survive this process.

        `synced` also flushes them to disk, so that they survive a crash of the machine; without it,
        call `sync` once for many appends.
        """
        self._file.write(b"".join(map(line_of, rows)))
        self._file.flush()
        if synced:
            self.sync()

    def sync(self) -> None:
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()  # also releases the lock
