"""A file of JSON lines that outlives kills: held by one process at a time, written with each append, a torn last line cut off."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from problems.columns import ProblemError


class JsonLines:
    """Opened, it reads every line there is; from then on it is appended to. A second process waits until the first has closed it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def open(self, read: Callable[[dict[str, Any]], None], mend: str) -> None:
        """`read` gets each line's object in order. Raises ProblemError with the line and the mend where one is none, or `read` finds it broken."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file: BinaryIO = self.path.open("a+b")
        fcntl.flock(self._file, fcntl.LOCK_EX)
        self._file.seek(0)
        whole = 0
        for number, line in enumerate(self._file, 1):
            if not line.endswith(b"\n"):
                break
            try:
                read(json.loads(line))
            except (ValueError, TypeError, KeyError) as error:
                raise ProblemError(
                    f"broken ({error})", mend, f"{self.path}: line {number}"
                ) from error
            whole += len(line)
        self._file.truncate(whole)

    def append(self, rows: Iterable[Mapping[str, Any]], synced: bool = True) -> None:
        """All rows in one write, which outlives this process; then to disk, which outlives the machine, unless `sync` is called for many at once."""
        self._file.write(b"".join(json.dumps(row).encode() + b"\n" for row in rows))
        self._file.flush()
        if synced:
            self.sync()

    def sync(self) -> None:
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()  # gives the lock back
