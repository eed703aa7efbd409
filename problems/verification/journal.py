"""The journal of verification: one JSON line per problem, so that a killed pass resumes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from artifacts.json_lines import JsonLines

TUPLES = ("survivors", "added", "dropped", "solved")  # lists in JSON
# followed by the packages: the machine lacks them, the problem is not at fault
ABSENT = "not measured, for want of "


@dataclass(frozen=True)
class JournalEntry:
    """A line of the journal. `reason` is None for a problem that was kept."""

    content_hash: str
    problem_id: str
    reason: str | None
    detail: str
    isolation: str
    # slowest test of any solution
    wall_s: float | None = None
    peak_mb: float | None = None
    cpu_s: float | None = None  # at most that test's wall time
    how: str = ""  # the verification rules
    mutants: int = 0  # mutants of the first solution with a verdict
    killed: int = 0
    survivors: tuple[str, ...] = ()  # names of mutants
    # tests that were added, in the JSON encoding of problems/encoding.py
    added: tuple[str, ...] = ()
    dropped: tuple[int, ...] = ()  # positions of wrong solutions that were left out
    equivalent: int = 0  # mutants that were not counted
    solved: tuple[int, ...] = ()  # positions of samples that serve as references
    agreement: float | None = None  # share of the samples that pass, without a reference


class Journal:
    """Verdicts on disk, by content hash, reached under the rules `how`.

    One process holds the journal at a time; a torn last line is cut off. Lines of other rules stay
    in the file: they are valid again when the rules are.
    """

    def __init__(self, path: Path, how: str = "") -> None:
        self.path, self.how = path, how
        self.entries: dict[str, JournalEntry] = {}
        self._lines = JsonLines(path)

    def __enter__(self) -> Journal:
        self._lines.open(self._read, "remove the line: its problem is verified again")
        return self

    def _read(self, row: dict[str, Any]) -> None:
        entry = JournalEntry(**row | {key: tuple(row[key]) for key in TUPLES if key in row})
        if entry.how == self.how:
            self.entries.setdefault(entry.content_hash, entry)

    def append(self, entries: Iterable[JournalEntry]) -> None:
        """Write all lines at once and flush them to disk.

        A problem is not recorded if a package is missing here, because the package may be installed
        later.
        """
        fresh = [entry for entry in entries if entry.content_hash not in self.entries]
        self._lines.append(
            asdict(entry) for entry in fresh if not (entry.reason or "").startswith(ABSENT)
        )
        self.entries.update((entry.content_hash, entry) for entry in fresh)

    def __exit__(self, *_: object) -> None:
        self._lines.close()
