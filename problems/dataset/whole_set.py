"""What the decisions over a whole set need to know of each problem, in a database on local disk.

In: the scans of all parts, in any order. Out: the problems by rank, the reasons for which problems
are removed, and counts. In memory are one scan at a time, and while duplicates are searched some 30
bytes per problem in arrays.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from problems.cleaning.contamination import Overlap
from problems.cleaning.curation import LicenceCounts
from problems.cleaning.duplicates import KeepRank, Marks, Places
from problems.cleaning.signature_file import SignatureFile, SignatureRows
from problems.cleaning.sketch import Sketch
from problems.funnel import Removed, Stage
from problems.schema import Problem, from_row, to_row

T_co = TypeVar("T_co", covariant=True)
TABLES = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA cache_size = -65536;
CREATE TABLE problems (
    number INTEGER PRIMARY KEY, problem_id TEXT NOT NULL, part INTEGER, row INTEGER,
    split INTEGER, derived INTEGER, tests INTEGER, solutions INTEGER,
    statement INTEGER, solved INTEGER, composed INTEGER, parents TEXT,
    signature INTEGER, program INTEGER, programs INTEGER,
    stage TEXT, reason TEXT, detail TEXT
);
CREATE TABLE wholes (place INTEGER PRIMARY KEY, problem TEXT NOT NULL);
"""
RANKED = np.dtype(
    [
        ("number", np.int32),
        ("statement", np.int64),
        ("solved", np.int64),
        ("composed", bool),
        ("signature", np.int32),
        ("program", np.int32),
        ("programs", np.int32),
    ]
)
PLACE = np.dtype([("part", np.int32), ("row", np.int32)])
VERIFIED, CLEAN = "verified", "clean"  # stages that remove problems


@dataclass(frozen=True)
class PartScan:
    """One part's data for decisions over the whole set; `rows` are the rows without a fault."""

    part: str
    unverified: list[Removed]
    isolation: list[str]
    faults: list[Removed]
    rows: list[int]
    marks: Marks
    sketch: Sketch
    overlaps: list[Overlap]
    licences: LicenceCounts


class ShardRows(NamedTuple):
    """Problems of a shard: for each, the part's place in `WholeSet.parts` and the row there."""

    name: str
    parts: NDArray[np.int32]
    rows: NDArray[np.int32]


class StoredSketch(NamedTuple):
    """The signatures of some problems, in files; see `Sketched`."""

    statements: SignatureRows
    programs: SignatureRows
    program_of: NDArray[np.int64]


@dataclass(frozen=True)
class Lookup(Generic[T_co]):
    """Values by place, read from the database one at a time."""

    read: Callable[[int], T_co]

    def __getitem__(self, place: int, /) -> T_co:
        return self.read(place)


class WholeSet:
    """The problems of a set. folder: empty, on local disk; about 2 KiB are written per problem."""

    def __init__(self, folder: Path) -> None:
        self._database = sqlite3.connect(folder / "problems.db")
        self._database.executescript(TABLES)
        self._statements = SignatureFile(folder, "statements")
        self._programs = SignatureFile(folder, "programs")
        self._ranked = np.empty(0, RANKED)
        self.parts: list[str] = []
        self.isolation: set[str] = set()
        self.overlaps: list[Overlap] = []
        self.licences: LicenceCounts = Counter()

    def close(self) -> None:
        self._database.close()

    def add(self, scan: PartScan) -> None:
        """Add the problems of one part."""
        part, first, marks = len(self.parts), len(self._statements), scan.marks
        counts = np.bincount(scan.sketch.program_of, minlength=len(scan.rows))
        starts = len(self._programs) + np.cumsum(counts) - counts
        keys = zip(
            marks.statements.view(np.int64).tolist(),
            marks.solved.view(np.int64).tolist(),
            marks.composed.tolist(),
            strict=True,
        )
        signatures = zip(
            range(first, first + len(scan.rows)), starts.tolist(), counts.tolist(), strict=True
        )
        rows = (
            (rank.problem_id, part, row, *rank[:4], *own_keys, _json(marks.parents[at]), *places)
            for at, (row, own_keys, places) in enumerate(
                zip(scan.rows, keys, signatures, strict=True)
            )
            for rank in [marks.ranks[at]]
        )
        self._database.executemany(
            f"INSERT INTO problems VALUES (NULL{', ?' * 14}, NULL, NULL, NULL)", rows
        )
        for stage, removed in ((VERIFIED, scan.unverified), (CLEAN, scan.faults)):
            self._database.executemany(
                "INSERT INTO problems (problem_id, stage, reason, detail) VALUES (?, ?, ?, ?)",
                ((one.problem_id, stage, one.reason, one.detail) for one in removed),
            )
        self._statements.append(scan.sketch.statements)
        self._programs.append(scan.sketch.programs)
        self.parts.append(scan.part)
        self.isolation.update(scan.isolation)
        self.overlaps += scan.overlaps
        self.licences += scan.licences

    def index(self) -> str | None:
        """Finish adding. Return the first id that occurs twice, or None."""
        self._database.execute("CREATE INDEX ids ON problems (problem_id)")
        self.overlaps.sort(key=lambda overlap: overlap.problem_id)
        twice = self._database.execute(
            "SELECT problem_id FROM problems GROUP BY problem_id HAVING count(*) > 1 "
            "ORDER BY problem_id LIMIT 1"
        ).fetchone()
        return str(twice[0]) if twice else None

    def derived(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield id and parents of each problem that was derived from others."""
        query = "SELECT problem_id, parents FROM problems WHERE parents IS NOT NULL"
        for problem_id, parents in self._database.execute(query):
            yield problem_id, tuple(json.loads(parents))

    def remove(self, removed: Iterable[Removed]) -> None:
        """Record the reasons for which problems are removed that were verified."""
        self._database.executemany(
            "UPDATE problems SET stage = ?, reason = ?, detail = ? WHERE problem_id = ?",
            ((CLEAN, one.reason, one.detail, one.problem_id) for one in removed),
        )

    def rank(self) -> Marks:
        """Return the marks of all problems that are not removed, in the order of their ranks.

        The methods below take places in this order.
        """
        names = ", ".join(RANKED.names or ())
        query = (
            f"SELECT {names} FROM problems WHERE reason IS NULL "
            "ORDER BY split, derived, tests, solutions, problem_id"
        )
        self._ranked = np.fromiter(self._database.execute(query), RANKED)
        return Marks(
            Lookup(self._rank),
            self._ranked["statement"].astype(np.uint64),
            self._ranked["solved"].astype(np.uint64),
            self._ranked["composed"].copy(),
            Lookup(self._parents),
        )

    def sketched(self, places: Places) -> StoredSketch:
        """Return the signatures of the problems at these places, in this order."""
        rows = self._ranked[places]
        counts = rows["programs"].astype(np.int64)
        program_of = np.repeat(np.arange(len(rows)), counts)
        within = np.arange(len(program_of)) - np.repeat(np.cumsum(counts) - counts, counts)
        return StoredSketch(
            self._statements.take(rows["signature"].copy()),
            self._programs.take(np.repeat(rows["program"], counts) + within),
            program_of,
        )

    def positions(self, places: Collection[int]) -> list[tuple[str, list[tuple[int, int]]]]:
        """Return for each part the places of its problems, each with its row."""
        found = sorted((*self._one("part, row", place), place) for place in places)
        return [
            (self.parts[part], [(place, row) for _, row, place in same])
            for part, same in groupby(found, key=lambda one: one[0])
        ]

    def store(self, problems: Iterable[tuple[int, Problem]]) -> None:
        """Store whole problems by their places."""
        self._database.executemany(
            "INSERT INTO wholes VALUES (?, ?)",
            ((place, json.dumps(to_row(problem))) for place, problem in problems),
        )

    @property
    def wholes(self) -> Lookup[Problem]:
        """The whole problems that were stored."""
        return Lookup(self._whole)

    def shards(self, size: int) -> list[ShardRows]:
        """Return the problems that are not removed, by id, in runs of `size`."""
        query = "SELECT part, row FROM problems WHERE reason IS NULL ORDER BY problem_id"
        rows = np.fromiter(self._database.execute(query), PLACE)
        return [
            ShardRows(
                f"shard-{at // size:05}", rows["part"][at : at + size], rows["row"][at : at + size]
            )
            for at in range(0, max(1, len(rows)), size)
        ]

    def removed_of(self, problem_ids: Iterable[str]) -> set[str]:
        """Return those of the ids whose problems are removed."""
        query = "SELECT reason FROM problems WHERE problem_id = ?"
        return {
            problem_id
            for problem_id in problem_ids
            if self._database.execute(query, (problem_id,)).fetchone()[0] is not None
        }

    def removed(self, stage: str) -> Iterator[Removed]:
        """Yield the problems that a stage removes, by id."""
        query = (
            "SELECT problem_id, reason, detail FROM problems WHERE stage = ? ORDER BY problem_id"
        )
        for row in self._database.execute(query, (stage,)):
            yield Removed(*row)

    def stages(self) -> tuple[Stage, Stage]:
        """Return the funnel, with the first problem of each reason."""
        count = self._database.execute("SELECT count(*) FROM problems").fetchone()[0]
        stages = []
        for stage in (VERIFIED, CLEAN):
            # Of the other columns, SQLite returns those of the row with the minimum.
            query = (
                "SELECT min(problem_id) AS first, reason, detail, count(*) FROM problems "
                "WHERE stage = ? GROUP BY reason ORDER BY first"
            )
            rows = self._database.execute(query, (stage,)).fetchall()
            first = tuple(Removed(*row[:3]) for row in rows)
            more = {row[1]: row[3] - 1 for row in rows if row[3] > 1}
            left = count - sum(row[3] for row in rows)
            stages.append(Stage(stage, count, left, first, more=more))
            count = left
        return stages[0], stages[1]

    def _one(self, columns: str, place: int) -> tuple[int, ...]:
        number = int(self._ranked["number"][place])
        row: tuple[int, ...] = self._database.execute(
            f"SELECT {columns} FROM problems WHERE number = ?", (number,)
        ).fetchone()
        return row

    def _rank(self, place: int) -> KeepRank:
        row = self._one("split, derived, tests, solutions, problem_id", place)
        return KeepRank(row[0], bool(row[1]), row[2], row[3], str(row[4]))

    def _parents(self, place: int) -> tuple[str, ...]:
        parents = self._one("parents", place)[0]
        return tuple(json.loads(str(parents))) if parents else ()

    def _whole(self, place: int) -> Problem:
        query = "SELECT problem FROM wholes WHERE place = ?"
        text = self._database.execute(query, (place,)).fetchone()[0]
        return from_row(json.loads(text), f"place {place}")


def _json(parents: Sequence[str]) -> str | None:
    return json.dumps(parents) if parents else None
