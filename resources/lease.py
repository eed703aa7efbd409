"""The training lease of a home: one process trains at a time.

A kernel lock enforces this; the kernel releases it when the holder dies. In: the path of the lease
file. Out: the lease, or `LeaseHeld` with its holder and the time.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from pydantic import BaseModel, ConfigDict

ATTEMPTS, PAUSE_S = 5, 0.1
_FILES: dict[Path, TextIO] = {}  # leases of this process, until it ends or releases them


class Holder(BaseModel):
    model_config = ConfigDict(frozen=True)

    pid: int
    run_id: str
    since: str  # UTC, ISO 8601

    def __str__(self) -> str:
        return f"{self.run_id} (process {self.pid}) since {self.since} UTC"


class LeaseHeld(RuntimeError):
    def __init__(self, holder: Holder | None, path: Path) -> None:
        super().__init__(
            f"{path.parent} is training already: {holder or 'another process'}. Wait for it, "
            "or use another RATCHET_HOME"
        )
        self.holder = holder


def take(path: Path, run_id: str) -> None:
    """Take the lease for this process, or keep it if the process has it. Raises LeaseHeld."""
    if path not in _FILES:
        path.parent.mkdir(parents=True, exist_ok=True)
        file: TextIO = path.open("a+", encoding="utf-8")
        if not _locked(file):
            holder = _read(file)
            file.close()
            raise LeaseHeld(holder, path)
        _FILES[path] = file
    lease_file = _FILES[path]
    lease_file.truncate(0)
    lease_file.write(
        Holder(
            pid=os.getpid(), run_id=run_id, since=datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
        ).model_dump_json()
    )
    lease_file.flush()


def release(path: Path) -> None:
    """Release the lease, if this process holds it."""
    if file := _FILES.pop(path, None):
        file.truncate(0)
        file.close()


def holder(path: Path) -> Holder | None:
    """Return the holder of the lease, or None. The lease of a dead process is free."""
    if not path.exists():
        return None
    with path.open("r", encoding="utf-8") as file:
        if path not in _FILES:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return None
            except BlockingIOError:
                pass
        return _read(file)


def _locked(file: TextIO) -> bool:
    """Try to take the lock, several times.

    A process that reads the holder has the lock for a moment too.
    """
    for remaining in reversed(range(ATTEMPTS)):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(PAUSE_S if remaining else 0)
    return False


def _read(file: TextIO) -> Holder | None:
    file.seek(0)
    try:
        return Holder.model_validate(json.loads(file.read()))
    except ValueError:
        return None  # read between taking the lease and writing the holder
