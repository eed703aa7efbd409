"""Split a set of problems into parts of equal size, and read them again.

In: parquet files in our schema at any fsspec URL. Out: `arrived/` below the target, with a part in
each file, and `guards.parquet` with the gated problems.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from artifacts.folder import Folder
from problems.columns import ProblemError
from problems.dataset.shards import parquet_bytes
from problems.funnel import Removed
from problems.parquet_file import reading_parquet
from problems.schema import Problem, check_table, from_row, to_table

ROWS = 2000  # problems per part
ORIGIN = b"ratchet.origin"  # metadata key of a part: the source file and row of its first row
GUARDS = "guards.parquet"


def split(
    source: Folder, target: Folder, rows: int, gated: Iterable[Problem], how: str
) -> list[str]:
    """Split the input into parts and return their names.

    The input is read once, as tables; its gated problems are also written to GUARDS. `how`:
    identifies how the parts will be verified.
    """
    files = source.versions(".parquet")
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
            "no parquet file",
            "name a file, or a folder with files that end in .parquet",
            source.url,
        )
    parts, guards = list[str](), list(gated)
    for name in files:
        where, first = source.at(name), 0
        with source.open(name) as file:
            for arrived in _tables(file, where, rows):
                metadata = (arrived.schema.metadata or {}) | {ORIGIN: f"{where}: row {first}"}
                table = arrived.replace_schema_metadata(metadata)
                parts.append(f"part-{len(parts):05}.parquet")
                target.write(f"arrived/{parts[-1]}", parquet_bytes(table))
                guards += (
                    readable(table.filter(pc.field("gated")), where)[0]
                    if "gated" in table.column_names
                    else []
                )
                first += len(table)
    target.write(GUARDS, parquet_bytes(to_table(guards)))
    target.write("arrived.json", json.dumps({"inputs": inputs, "parts": parts}).encode())
    return parts


def _arrived(target: Folder) -> dict[str, Any]:
    try:
        known = json.loads(target.read("arrived.json"))
        return {"inputs": known["inputs"], "parts": list(known["parts"])}
    except (ValueError, LookupError, TypeError) as error:
        fix = f"remove {target.url}, and run the command again"
        raise ProblemError("cannot be read", fix, target.at("arrived.json")) from error


def _tables(file: BinaryIO, where: str, rows: int) -> Iterator[pa.Table]:
    """Yield the rows of a parquet file, so many at once. Raises ProblemError."""
    with reading_parquet(where):
        parquet = pq.ParquetFile(file)
        check_table(parquet.schema_arrow, where)
        for batch in parquet.iter_batches(rows):
            yield pa.Table.from_batches([batch]).replace_schema_metadata(
                parquet.schema_arrow.metadata
            )


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
