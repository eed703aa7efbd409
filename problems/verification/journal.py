"""The journal of verification: what was found out about each problem, a JSON line each, so that a pass that was killed goes on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from problems.json_lines import JsonLines

ABSENT = "not measured, for want of "  # the packages: the machine is at fault


@dataclass(frozen=True)
class Entry:
    """A line of the journal. `reason` is None for a problem that was kept."""

    content_hash: str
    problem_id: str
    reason: str | None
    detail: str
    isolation: str
    wall_s: float | None = (
        None  # the slowest test of any solution; None in lines from before it was kept
    )
    peak_mb: float | None = None
    cpu_s: float | None = (
        None  # at most what that test took; None in older lines, where the clock stands for it
    )
    how: str = (
        ""  # by which rules it was verified; lines from before there were any are not believed
    )
    mutants: int = 0  # of the first solution, that the sandbox decided
    killed: int = 0
    survivors: tuple[str, ...] = ()  # by name
    added: tuple[str, ...] = ()  # tests that strengthen it, in the JSON of problems/encoding.py


class Journal:
    """Verdicts on disk, by content hash, reached by the rules `how`. Held by one process at a time; a torn last line is cut off.

    Lines of other rules stay in the file: they hold again when the rules do.
    """

    def __init__(self, path: Path, how: str = "") -> None:
        self.path, self.how = path, how
        self.entries: dict[str, Entry] = {}
        self._lines = JsonLines(path)

    def __enter__(self) -> Journal:
        self._lines.open(self._read, "remove the line: its problem is verified again")
        return self

    def _read(self, row: dict[str, Any]) -> None:
        entry = Entry(
            **row | {key: tuple(row[key]) for key in ("survivors", "added") if key in row}
        )
        if entry.how == self.how:
            self.entries.setdefault(entry.content_hash, entry)

    def append(self, entries: Iterable[Entry]) -> None:
        """All lines in one write, then to disk. A problem for which a package is absent here is not put down: it may be installed."""
        fresh = [entry for entry in entries if entry.content_hash not in self.entries]
        self._lines.append(
            asdict(entry) for entry in fresh if not (entry.reason or "").startswith(ABSENT)
        )
        self.entries.update((entry.content_hash, entry) for entry in fresh)

    def __exit__(self, *_: object) -> None:
        self._lines.close()
