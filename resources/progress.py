"""Progress of a run: one JSON line per event, in a file that the command line and the UI read.

A line is {"t": seconds since 1970, "stage": name, "event": begin|at|end|found|failed, "done",
"total", "text", "line_hash"}.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from artifacts.json_lines import line_of, row_of

Event = Literal["begin", "at", "end", "found", "failed"]
ON_RAY = "completions on Ray"  # text of a stage while a Ray job generates for it
EVERY_S = 0.3  # seconds between two lines about the same stage


class Line(BaseModel):
    model_config = ConfigDict(frozen=True)

    t: float
    stage: str
    event: Event
    done: int = 0
    total: int = 0
    text: str = ""


class Progress:
    """Write a stage's progress.

    Appends whole lines only, so that several processes may share the file.
    """

    def __init__(self, path: Path, stage: str) -> None:
        self.path, self.stage = path, stage
        self._reported_at, self._reported = 0.0, (0, 0, "")

    def at(self, done: int, total: int, text: str = "") -> None:
        """Report `done` of `total` units.

        A line that says the same as the one before is dropped, and one that comes too quickly,
        but never the one for the last unit.
        """
        report = (done, total, text)
        if report == self._reported:
            return
        if done >= total or time.monotonic() - self._reported_at >= EVERY_S:
            self._reported_at, self._reported = time.monotonic(), report
            self.write("at", done, total, text)

    def write(self, event: Event, done: int = 0, total: int = 0, text: str = "") -> None:
        line = Line(t=time.time(), stage=self.stage, event=event, done=done, total=total, text=text)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(handle, line_of(line.model_dump()))
        finally:
            os.close(handle)


def read(path: Path, offset: int = 0) -> tuple[list[Line], int]:
    """Return the whole lines from byte `offset` on, and the next offset.

    A line that a crash truncated, or that was changed, is skipped.
    """
    if not path.exists():
        return [], offset
    with path.open("rb") as file:
        file.seek(offset)
        data = file.read()
    whole = data[: data.rfind(b"\n") + 1]
    return list(_parse(whole)), offset + len(whole)


def work(lines: Iterable[Line]) -> Iterator[tuple[Line, float]]:
    """Yield each line with the time, in seconds since 1970, until which its attempt was seen at it.

    An attempt lasts from its `begin` to its last line, so that those that failed or were killed
    count.
    """
    by_stage: dict[str, list[Line]] = {}
    for line in lines:
        by_stage.setdefault(line.stage, []).append(line)
    for ours in by_stage.values():
        for before, after in pairwise(ours):
            if after.event != "begin":
                yield before, max(before.t, after.t)


def attempts_s(lines: Iterable[Line], stage: str) -> float:
    """Return the seconds of a stage's attempts."""
    return sum(end - line.t for line, end in work(lines) if line.stage == stage)


def _parse(data: bytes) -> Iterator[Line]:
    for text in data.splitlines():
        try:
            yield Line.model_validate(row_of(text))
        except (ValueError, TypeError):
            continue
