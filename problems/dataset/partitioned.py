"""Verify and curate a partitioned set of problems at any fsspec URL, with many workers.

This is for sets that do not fit into memory or would take one process too long. Each part is
processed independently. Its verdicts are written once, under the part's name, and a part with
verdicts is not processed again. So a pass that was killed resumes where it stopped. Duplicates
concern all problems, so one process decides on them, from about 1 KiB per problem. Whole problems
are read only when two of them must be compared word by word. The problems kept, the reasons and the
hash are the same as those of `verify` and `curate` on the same set.

Below the target: `arrived/` (the input in parts of ROWS), `verified/` and `problems/` (available
for training), each with parquet files in our schema; `gated.parquet`, `removed.json`, the evidence,
and `manifest.json`, which is written last.
"""

from __future__ import annotations

import atexit
import json
import tempfile
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from artifacts.folder import Folder
from artifacts.hashing import hash_data
from artifacts.manifest import NAME, Manifest
from problems.cleaning.contamination import Overlap, suspects
from problems.cleaning.curation import Curated, Curation, doubled, leaking, own_fault
from problems.cleaning.duplicates import Duplicates, Marks, grouped, marks
from problems.cleaning.semantic import BothIndexes
from problems.cleaning.similarity import Sketch, joined, sketch
from problems.columns import ProblemError
from problems.dataset.evidence import write_evidence
from problems.funnel import Removed, Stage
from problems.parallel import ParallelMap
from problems.schema import Problem, check_table, from_row, hash_of, to_table
from problems.verification.verification import Verification, verify
from sandbox.sandbox import Sandbox, SandboxConfig

ROWS = 2000  # problems per part
ORIGIN = b"ratchet.origin"  # metadata key of a part: the source file and row of its first row
GATED = "gated.parquet"


@dataclass(frozen=True)
class Cleaned:
    """The result for the set: its hash, as `schema.set_hash` computes it, and the funnel."""

    content_hash: str
    stages: tuple[Stage, Stage]


@dataclass(frozen=True)
class Rules:
    """How to verify and curate a set. `sandbox`: the settings for one worker."""

    verification: Verification = field(default_factory=Verification)
    curation: Curation = field(default_factory=Curation)
    sandbox: SandboxConfig = field(default_factory=SandboxConfig)


def clean(
    source: str,
    target: str,
    spread: ParallelMap,
    rules: Rules,
    gated: Iterable[Problem] = (),
    rows: int = ROWS,
) -> Cleaned:
    """Verify and curate the parquet files below `source` into `target`.

    Both are local paths or fsspec URLs. rows: problems per part; gated: gated problems in addition
    to those of the set itself. Raises ProblemError if a file is not a set of problems, if an id
    occurs twice, or if `target` holds work on another input or with other verification rules.
    """
    folder = Folder(target)
    parts = split(Folder(source), folder, rows, gated, rules.verification.how)
    with ScanPart(folder, rules) as scan:
        scans: list[PartScan] = sorted(spread(scan, parts), key=lambda one: one.part)
    return decide(folder, scans, spread, rules)


def split(
    source: Folder, target: Folder, rows: int, gated: Iterable[Problem], how: str
) -> list[str]:
    """Split the input into parts and return their names.

    The input is read once, as tables; its gated problems are also written to GATED. `how`:
    identifies how the parts will be verified.
    """
    files = source.versions(".parquet")
    inputs = {"files": files, "rows": rows, "verification": how}
    if target.has("arrived.json"):
        known = json.loads(target.read("arrived.json"))
        if known["inputs"] != inputs:
            raise ProblemError(
                "has results for another input or other verification rules",
                "give another target folder, or remove this one",
                target.url,
            )
        return list(known["parts"])
    if not files:
        raise ProblemError(
            "no parquet file",
            "name a file, or a folder with files that end in .parquet",
            source.url,
        )
    parts, guards = list[str](), list(gated)
    for name in files:
        where, first = source.at(name), 0
        with source.open(name) as file:
            try:
                parquet = pq.ParquetFile(file)
            except pa.ArrowException as error:
                raise ProblemError(
                    f"not a complete parquet file ({str(error).splitlines()[0]})",
                    "write it again",
                    where,
                ) from error
            check_table(parquet.schema_arrow, where)
            for batch in parquet.iter_batches(rows):
                metadata = (parquet.schema_arrow.metadata or {}) | {ORIGIN: f"{where}: row {first}"}
                table = pa.Table.from_batches([batch]).replace_schema_metadata(metadata)
                parts.append(f"part-{len(parts):05}.parquet")
                target.write(f"arrived/{parts[-1]}", _bytes(table))
                guards += (
                    readable(table.filter(pc.field("gated")), where)[0]
                    if "gated" in table.column_names
                    else []
                )
                first += len(table)
    target.write(GATED, _bytes(to_table(guards)))
    target.write("arrived.json", json.dumps({"inputs": inputs, "parts": parts}).encode())
    return parts


def readable(table: pa.Table, where: str) -> tuple[list[Problem], list[Removed]]:
    """Return the problems of a table, and the rows that cannot be read, by file and row."""
    problems, removed = [], []
    name, _, first = (
        (table.schema.metadata or {})
        .get(ORIGIN, f"{where}: row 0".encode())
        .decode()
        .rpartition(": row ")
    )
    for number, row in enumerate(table.to_pylist(), int(first)):
        try:
            problems.append(from_row(row, f"{name}: row {number}"))
        except ProblemError as error:
            removed.append(
                Removed(f"{name}: row {number}", "cannot be read", f"{error.reason}: {error.fix}")
            )
    return problems, removed


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


@dataclass
class ScanPart:
    """Examine one part: verdicts (unless cached), faults, gated overlaps, marks and sketch.

    The sandbox opens when a part first needs it, and stays open in this process.
    """

    folder: Folder
    rules: Rules
    _opened: Sandbox | None = field(default=None, init=False, repr=False)
    _gated: BothIndexes | None = field(default=None, init=False, repr=False)

    def __call__(self, part: str) -> PartScan:
        if not self.folder.has(f"verified/{part}"):
            self._verify(part)
        self._gated = self._gated or BothIndexes(
            guards(self.folder), self.rules.curation.sentence_model
        )
        problems = readable(_table(self.folder, f"verified/{part}"), part)[0]
        verified = json.loads(self.folder.read(f"verified/{part}.json"))
        faults = [own_fault(problem, self.rules.curation) for problem in problems]
        rows = [row for row, fault in enumerate(faults) if fault is None]
        rest = [problems[row] for row in rows]
        rest_sketch = sketch(rest)
        return PartScan(
            part,
            [Removed(**row) for row in verified["removed"]],
            verified["isolation"],
            [fault for fault in faults if fault],
            rows,
            marks(rest, alone=False),
            rest_sketch.take(range(len(rest))),
            self._gated.overlaps(rest, self._sandbox(), rest_sketch),
        )

    def _sandbox(self) -> Sandbox:
        if self._opened is None:
            self._opened = Sandbox(self.rules.sandbox).__enter__()
            atexit.register(self.close)
        return self._opened

    def _verify(self, part: str) -> None:
        problems, removed = readable(_table(self.folder, f"arrived/{part}"), part)
        with tempfile.TemporaryDirectory() as scratch:
            verified = verify(
                problems, self._sandbox(), Path(scratch) / "journal.jsonl", self.rules.verification
            )
        record = {
            "removed": [asdict(row) for row in [*removed, *verified.removed]],
            "isolation": verified.isolation,
        }
        self.folder.write(f"verified/{part}.json", json.dumps(record).encode())
        # Written last: this file marks the part as done.
        self.folder.write(f"verified/{part}", _bytes(to_table(verified.problems)))

    def __enter__(self) -> ScanPart:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._opened:
            self._opened.close()
            self._opened = None


def guards(folder: Folder) -> list[Problem]:
    """Return the gated problems, each once."""
    gated = readable(_table(folder, GATED), GATED)[0]
    return list({problem.problem_id: problem for problem in gated}.values())


@dataclass(frozen=True)
class FetchProblems:
    """Read the given rows of one part as whole problems."""

    folder: Folder

    def __call__(self, request: tuple[str, list[int]]) -> tuple[str, list[Problem]]:
        part, rows = request
        return part, readable(_table(self.folder, f"verified/{part}").take(rows), part)[0]


@dataclass(frozen=True)
class WriteProblems:
    """Write the problems of one part that are kept; return their ids and content hashes."""

    folder: Folder

    def __call__(self, request: tuple[str, frozenset[str]]) -> list[tuple[str, str]]:
        part, removed = request
        problems = readable(_table(self.folder, f"verified/{part}"), part)[0]
        remaining = sorted(
            (problem for problem in problems if problem.problem_id not in removed),
            key=lambda problem: problem.problem_id,
        )
        self.folder.write(f"problems/{part}", _bytes(to_table(remaining)))
        return [(problem.problem_id, problem.content_hash) for problem in remaining]


def decide(folder: Folder, scans: list[PartScan], spread: ParallelMap, rules: Rules) -> Cleaned:
    """Decide over the whole set; write the problems kept and the reasons for the others."""
    unverified = [row for one in scans for row in one.unverified]
    faults = {row.problem_id: row for one in scans for row in one.faults}
    ids = [problem_id for one in scans for problem_id in _ids(one)]
    every = [*ids, *(row.problem_id for row in unverified)]
    if twice := next((name for name, same in groupby(sorted(every)) if len(list(same)) > 1), None):
        raise ProblemError(
            f"problem_id {twice!r} occurs twice", "give each problem an id of its own", folder.url
        )
    overlaps = sorted(
        (overlap for one in scans for overlap in one.overlaps),
        key=lambda overlap: overlap.problem_id,
    )
    derived = (
        (rank.problem_id, parents)
        for one in scans
        for rank, parents in zip(one.marks.ranks, one.marks.parents, strict=True)
    )
    reasons = faults | leaking(overlaps, derived)
    duplicates = _duplicates(folder, scans, reasons.keys(), spread)
    reasons |= doubled(duplicates)
    removals = [(one.part, frozenset(reasons.keys() & set(_ids(one)))) for one in scans]
    hashes = [pair for pairs in spread(WriteProblems(folder), removals) for pair in pairs]
    removed = [reasons[name] for name in sorted(reasons)]
    stages = (
        Stage("verified", len(every), len(ids), tuple(unverified)),
        Stage("clean", len(ids), len(hashes), tuple(removed)),
    )
    lists = suspects(overlaps, guards(folder), (name for name, _ in hashes))
    _write_reports(folder, Curated([], removed, overlaps, duplicates, lists), unverified)
    digest = hash_of(hashes)
    inputs = {
        "arrived": hash_data(json.loads(folder.read("arrived.json"))),
        GATED: hash_data([p.content_hash for p in guards(folder)]),
    }
    decides = {
        "verification": rules.verification.model_dump(mode="json"),
        "curation": rules.curation.model_dump(mode="json", exclude={"processes"}),
    }
    facts = {"came_in": len(every), "verified": len(ids), "kept": len(hashes), "parts": len(scans)}
    facts |= {"groups": len(duplicates.groups)}
    facts |= {"capped": duplicates.capped, "uncompared": duplicates.uncompared}
    manifest = Manifest(
        kind="datasets",
        name="clean_problems",
        key=hash_data([inputs, decides]),
        content_hash=digest,
        inputs=inputs,
        config=decides,
        facts=facts,
        isolation=", ".join(sorted({level for one in scans for level in one.isolation})),
    )
    folder.write(NAME, manifest.stamped().model_dump_json(indent=1).encode())
    return Cleaned(digest, stages)


def _ids(one: PartScan) -> list[str]:
    return [
        *(rank.problem_id for rank in one.marks.ranks),
        *(fault.problem_id for fault in one.faults),
    ]


def _duplicates(
    folder: Folder, scans: Sequence[PartScan], removed: Collection[str], spread: ParallelMap
) -> Duplicates:
    """Find duplicates, as `duplicates` does, among all problems that are not removed yet."""
    ranks = [rank for one in scans for rank in one.marks.ranks]
    places = [(one.part, row) for one in scans for row in one.rows]
    order = sorted(
        (at for at, rank in enumerate(ranks) if rank.problem_id not in removed),
        key=lambda at: ranks[at],
    )
    columns = {
        name: np.concatenate([getattr(one.marks, name) for one in scans])
        for name in ("statements", "solved", "composed")
    }
    parents = [parent for one in scans for parent in one.marks.parents]
    joint = joined(
        (one.sketch for one in scans), len(ranks), sum(len(one.sketch.programs) for one in scans)
    )

    def read(positions: Collection[int]) -> dict[int, Problem]:
        requested = sorted((places[order[at]], at) for at in positions)
        parts = [
            (part, [(row, at) for (_, row), at in same])
            for part, same in groupby(requested, key=lambda one: one[0][0])
        ]
        requests = [(part, [row for row, _ in rows]) for part, rows in parts]
        problems = dict(spread(FetchProblems(folder), requests))
        return {
            at: problem
            for part, rows in parts
            for (_, at), problem in zip(rows, problems[part], strict=True)
        }

    return grouped(
        Marks(ranks, **columns, parents=parents).take(order),
        lambda positions: joint.take([order[at] for at in positions]),
        read,
    )


def _write_reports(folder: Folder, curated: Curated, unverified: Iterable[Removed]) -> None:
    folder.write(
        "removed.json",
        json.dumps([asdict(row) for row in [*unverified, *curated.removed]], indent=1).encode(),
    )
    with tempfile.TemporaryDirectory() as scratch:
        write_evidence(curated, Path(scratch))
        for path in sorted(Path(scratch).iterdir()):
            folder.write(path.name, path.read_bytes())


def _table(folder: Folder, name: str) -> pa.Table:
    return pq.read_table(pa.BufferReader(folder.read(name)))


def _bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue().to_pybytes())
