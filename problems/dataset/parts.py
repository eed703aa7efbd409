"""Split a set of problems into parts of equal size, and read them again.

In: files of problems at any fsspec URL: parquet in our schema, JSON lines, JSON, CSV. Out:
`arrived/` below the target, with a part in each file, and `guards.parquet` with the gated problems.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from artifacts.folder import Folder
from problems.columns import ProblemError
from problems.dataset.shards import parquet_bytes
from problems.funnel import Removed
from problems.parquet_file import reading_parquet
from problems.reading.place import Place
from problems.reading.rows import SUFFIXES
from problems.schema import Problem, check_table, from_row, to_table
from problems.sources.registry import read, recognized, source_name

ROWS = 2000  # problems per part
ORIGIN = b"ratchet.origin"  # metadata key of a part: the source file and row of its first row
GUARDS = "guards.parquet"
PARQUET = ".parquet"


def split(
    source: Folder, target: Folder, rows: int, gated: Iterable[Problem], how: str
) -> list[str]:
    """Split the input into parts and return their names.

    The input is read once, as tables; its gated problems are also written to GUARDS. Of a folder
    without parquet the files in the other formats of `SUFFIXES` are read. `how`: identifies how the
    parts will be verified. Raises ProblemError.
    """
    files = source.versions(PARQUET) or source.versions(SUFFIXES)
    inputs = {"files": files, "rows": rows, "verification": how}
    if target.has("arrived.json"):
        known = _arrived(target)
        if known["inputs"] != inputs:
            raise ProblemError(
                "has results for another input or other verification rules",
                "give another target folder, or remove this one",
                target.url,
            )
        return list(known["parts"])
    if not files:
        raise ProblemError(
            "no file of problems",
            f"name a file, or a folder with files that end in {', '.join(SUFFIXES)}",
            source.url,
        )
    parts, guards, read, unread = list[str](), list(gated), 0, list[Removed]()
    for name in files:
        where = source.at(name)
        arrivals = _tables if where.endswith(PARQUET) else _converted
        for table, removed in arrivals(source, name, rows):
            parts.append(f"part-{len(parts):05}.parquet")
            target.write(f"arrived/{parts[-1]}", parquet_bytes(table))
            if removed:
                target.write(_removed_file(parts[-1]), json.dumps(removed, default=asdict).encode())
            if "gated" in table.column_names:
                guards += readable(table.filter(pc.field("gated")), where)[0]
            read, unread = read + len(table), unread or removed
    if unread and not read:
        row = unread[0]
        raise ProblemError("no row can be read; the first one", row.detail, row.problem_id)
    target.write(GUARDS, parquet_bytes(to_table(guards)))
    target.write("arrived.json", json.dumps({"inputs": inputs, "parts": parts}).encode())
    return parts


def arrived(folder: Folder, part: str) -> tuple[list[Problem], list[Removed]]:
    """Return the problems of a part, and its rows that cannot be read."""
    problems, removed = readable(read_table(folder, f"arrived/{part}"), part)
    if folder.has(file := _removed_file(part)):
        removed += [Removed(**row) for row in json.loads(folder.read(file))]
    return problems, removed


def _removed_file(part: str) -> str:
    return f"arrived/{part}.removed.json"


def _arrived(target: Folder) -> dict[str, Any]:
    try:
        known = json.loads(target.read("arrived.json"))
        return {"inputs": known["inputs"], "parts": list(known["parts"])}
    except (ValueError, LookupError, TypeError) as error:
        fix = f"remove {target.url}, and run the command again"
        raise ProblemError("cannot be read", fix, target.at("arrived.json")) from error


Arrivals = Iterator[tuple[pa.Table, list[Removed]]]


def _tables(source: Folder, name: str, rows: int) -> Arrivals:
    """Yield the rows of a parquet file in our schema, so many at once, with file and row of the
    first. Raises ProblemError.
    """
    where, first = source.at(name), 0
    with source.open(name) as file, reading_parquet(where):
        parquet = pq.ParquetFile(file)
        check_table(parquet.schema_arrow, where)
        for batch in parquet.iter_batches(rows):
            metadata = (parquet.schema_arrow.metadata or {}) | {ORIGIN: f"{where}: row {first}"}
            yield pa.Table.from_batches([batch]).replace_schema_metadata(metadata), []
            first += len(batch)


def _converted(source: Folder, name: str, rows: int) -> Arrivals:
    """Yield the problems of another file as `ratchet data add` reads it, so many at once, and the
    rows that are not problems. Raises ProblemError.
    """
    with source.local(name) as file:
        known = recognized(file) or source_name(Path(source.at(name)))
        each = read(known, Place(file))
        while batch := list(islice(each, rows)):
            removed = [
                Removed(
                    place.replace(str(file), source.at(name)),
                    "cannot be read",
                    f"{error.reason}: {error.fix}",
                )
                for place, error in batch
                if isinstance(error, ProblemError)
            ]
            yield to_table([each for _, each in batch if isinstance(each, Problem)]), removed


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


def guards(folder: Folder) -> list[Problem]:
    """Return the gated problems, each once."""
    gated = readable(read_table(folder, GUARDS), GUARDS)[0]
    return list({problem.problem_id: problem for problem in gated}.values())


def read_table(folder: Folder, name: str) -> pa.Table:
    """Return a whole file as a table. Raises ProblemError for a damaged one."""
    with reading_parquet(folder.at(name), f"remove {folder.url}, and run the command again"):
        return pq.read_table(pa.BufferReader(folder.read(name)))
