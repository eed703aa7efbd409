"""Faults that a training survived: `faults.jsonl` in its folder, one line each."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from artifacts.integrity import RESTORE

FILE = "faults.jsonl"


@dataclass(frozen=True)
class Fault:
    at: str  # UTC, ISO 8601
    what: str  # one sentence: what happened, and what was done about it

    def __str__(self) -> str:
        return f"{self.at} {self.what}"


def record(folder: Path, what: str) -> None:
    """Append one complete line and print it to the trainer's log; processes may share the file."""
    line = Fault(datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S"), " ".join(what.split())[:500])
    handle = os.open(folder / FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, json.dumps(asdict(line)).encode() + b"\n")
    finally:
        os.close(handle)
    print(f"fault: {line.what}", flush=True)


def read(folder: Path) -> list[Fault]:
    """Return the faults in order of time. In place of a line that cannot be read, one that says so;
    a last line that a kill truncated is left out.
    """
    path = folder / FILE
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")[:-1]
    return [_fault(line, f"{path}: line {number}") for number, line in enumerate(lines, start=1)]


def _fault(line: bytes, place: str) -> Fault:
    try:
        return Fault(**json.loads(line))
    except (ValueError, TypeError):
        return Fault("unknown time:", f"{place} cannot be read: {RESTORE}")
