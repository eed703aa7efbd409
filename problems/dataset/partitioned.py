"""Verify and curate a partitioned set of problems at any fsspec URL, with many workers.

This is for sets that do not fit into memory or would take one process too long. Each part is
processed independently. Its verdicts are written once, under the part's name, and a part with
verdicts is not processed again. So a pass that was killed resumes where it stopped. Duplicates
concern all problems, so one process decides on them, with its data in files on local disk
(whole_set.py). Whole problems are read only when two of them must be compared word by word. The
files of the dataset are those that `write_curated` writes for the same verified problems.

Below the target: the files of the dataset, with `manifest.json`, which is written last; `arrived/`
(the input in parts of ROWS), `guards.parquet` and `verified/`, from which a pass resumes.
"""

from __future__ import annotations

import atexit
import json
import tempfile
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from artifacts.folder import Folder
from artifacts.hashing import MANIFEST, content_of, hash_data
from artifacts.integrity import hashes_of, seal
from artifacts.manifest import Manifest
from problems.cleaning.contamination import suspects
from problems.cleaning.curation import doubled, leaking, licence_counts, licences, own_fault
from problems.cleaning.duplicates import find, marks
from problems.cleaning.semantic import BothIndexes
from problems.cleaning.settings import Curation
from problems.cleaning.sketch import sketch
from problems.columns import ProblemError
from problems.dataset.curated import GATED, facts
from problems.dataset.dataset_files import write_files
from problems.dataset.evidence import Evidence
from problems.dataset.parts import ROWS, arrived, guards, read_table, readable, split
from problems.dataset.rows_json import json_list
from problems.dataset.shards import Shards, parquet_bytes, write_shard
from problems.dataset.whole_set import CLEAN, VERIFIED, Lookup, PartScan, ShardRows, WholeSet
from problems.funnel import Removed, Stage
from problems.parallel import ParallelMap
from problems.schema import Problem, to_table, write_parquet
from problems.verification.settings import Verification
from problems.verification.verification import verify
from sandbox.sandbox import Sandbox, SandboxConfig

SHARD = 50_000  # problems that one worker holds while the dataset is written
SHARDS = "shards"


@dataclass(frozen=True)
class Cleaned:
    """The result for the set: the hash of the dataset's files, and the funnel."""

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
    """Verify and curate the files of problems below `source` into `target`.

    Both are local paths or fsspec URLs. rows: problems per part; gated: gated problems in addition
    to those of the set itself. Raises ProblemError if a file is not a set of problems, if an id
    occurs twice, or if `target` holds work on another input or with other verification rules.
    """
    folder = Folder(target)
    parts = split(Folder(source), folder, rows, gated, rules.verification.how)
    with tempfile.TemporaryDirectory() as scratch, closing(WholeSet(Path(scratch))) as whole:
        with ScanPart(folder, rules) as scan:
            for part_scan in spread(scan, parts):
                whole.add(part_scan)
        return decide(folder, whole, spread, rules)


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
        problems = readable(read_table(self.folder, f"verified/{part}"), part)[0]
        verified = json.loads(self.folder.read(f"verified/{part}.json"))
        faults = [own_fault(problem, self.rules.curation) for problem in problems]
        rows = [row for row, fault in enumerate(faults) if fault is None]
        rest = [problems[row] for row in rows]
        rest_sketch = sketch(rest)
        return PartScan(
            part=part,
            unverified=[Removed(**row) for row in verified["removed"]],
            isolation=verified["isolation"],
            faults=[fault for fault in faults if fault],
            rows=rows,
            marks=marks(rest, alone=False),
            sketch=rest_sketch.without_exact(),
            overlaps=self._gated.overlaps(rest, self._sandbox(), rest_sketch),
            licences=licence_counts(problems),
        )

    def _sandbox(self) -> Sandbox:
        if self._opened is None:
            self._opened = Sandbox(self.rules.sandbox).__enter__()
            atexit.register(self.close)
        return self._opened

    def _verify(self, part: str) -> None:
        problems, removed = arrived(self.folder, part)
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
        self.folder.write(f"verified/{part}", parquet_bytes(to_table(verified.problems)))

    def __enter__(self) -> ScanPart:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._opened:
            self._opened.close()
            self._opened = None


@dataclass(frozen=True)
class FetchProblems:
    """Read the given rows of one part as whole problems."""

    folder: Folder

    def __call__(self, request: tuple[str, list[int]]) -> tuple[str, list[Problem]]:
        part, rows = request
        return part, readable(read_table(self.folder, f"verified/{part}").take(rows), part)[0]


@dataclass(frozen=True)
class WriteShard:
    """Gather the problems of one shard from all parts, and write its tables."""

    folder: Folder
    parts: Sequence[str]

    def __call__(self, shard: ShardRows) -> str:
        problems = []
        for number in np.unique(shard.parts).tolist():
            part, rows = self.parts[number], shard.rows[shard.parts == number]
            problems += readable(read_table(self.folder, f"verified/{part}").take(rows), part)[0]
        return write_shard(problems, self.folder, f"{SHARDS}/{shard.name}")


def decide(folder: Folder, whole: WholeSet, spread: ParallelMap, rules: Rules) -> Cleaned:
    """Decide over the whole set; write the dataset and the reasons for the removed problems."""
    if twice := whole.index():
        raise ProblemError(
            f"problem_id {twice!r} occurs twice", "give each problem an id of its own", folder.url
        )
    whole.remove(leaking(whole.overlaps, whole.derived()).values())
    ranked = whole.rank()
    found = find(ranked, whole.sketched, _reader(folder, whole, spread))
    whole.remove(removed for group in found.groups(ranked) for removed in doubled(group))
    resembling = {overlap.problem_id for overlap in whole.overlaps}
    removed = whole.removed_of(resembling)
    lists = suspects(whole.overlaps, guards(folder), resembling - removed)
    evidence = Evidence(
        whole.overlaps,
        removed,
        lists,
        found.groups(ranked),
        found.capped,
        found.uncompared,
    )
    names = sorted(spread(WriteShard(folder, whole.parts), whole.shards(SHARD)))
    stages = whole.stages()
    with tempfile.TemporaryDirectory() as scratch:
        files = Path(scratch)
        write_parquet(guards(folder), files / GATED)
        write_files(Shards(folder, names), whole.removed(CLEAN), evidence, stages, files)
        counts = facts(
            files,
            stages[1],
            gated=len(guards(folder)),
            licences=licences(whole.licences, rules.curation),
            groups=len(found.members),
            capped=found.capped,
            uncompared=found.uncompared,
        )
        manifest = _publish(folder, files, counts, ", ".join(sorted(whole.isolation)), rules)
    folder.write("verified/removed.json", _text(whole.removed(VERIFIED)))
    folder.remove(SHARDS)
    return Cleaned(manifest.content_hash, stages)


def _reader(
    folder: Folder, whole: WholeSet, spread: ParallelMap
) -> Callable[[Collection[int]], Lookup[Problem]]:
    """Return a function that fetches whole problems to local disk, to be looked up."""

    def read(places: Collection[int]) -> Lookup[Problem]:
        positions = dict(whole.positions(places))
        requests = [(part, [row for _, row in rows]) for part, rows in positions.items()]
        for part, problems in spread(FetchProblems(folder), requests):
            at = (place for place, _ in positions[part])
            whole.store(zip(at, problems, strict=True))
        return whole.wholes

    return read


def _publish(
    folder: Folder, files: Path, counts: dict[str, Any], isolation: str, rules: Rules
) -> Manifest:
    """Copy the files to the target, the manifest last, and return it."""
    hashes = hashes_of(files)
    inputs = {
        "arrived": hash_data(json.loads(folder.read("arrived.json"))),
        "gated": hash_data([problem.content_hash for problem in guards(folder)]),
    }
    config = {
        "verification": rules.verification.model_dump(mode="json"),
        "curation": rules.curation.model_dump(mode="json", exclude={"processes"}),
    }
    manifest = Manifest(
        kind="datasets",
        name="clean_problems",
        key=hash_data([inputs, config]),
        content_hash=content_of(hashes),
        files=hashes,
        inputs=inputs,
        config=config,
        facts=counts,
        isolation=isolation,
    ).stamped()
    for name in hashes:
        folder.put(files / name, name)
    folder.write(MANIFEST, seal(manifest.model_dump_json(indent=1)).encode())
    return manifest


def _text(removed: Iterable[Removed]) -> bytes:
    return "".join(json_list(map(asdict, removed))).encode()
