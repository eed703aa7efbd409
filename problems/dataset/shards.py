"""The problems of a dataset in shards, from which its files are written a few rows at a time.

A shard is a run of problems in the order of the ids: a set in memory is one shard, a large set has
many, each written by a worker. In: problems. Out: tables of whole problems, of verl's rows, and of
what the card and the weights need to know of each problem.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from artifacts.folder import Folder
from problems.dataset.rl_parquet import verl_schema, verl_table
from problems.difficulty.features import SCHEMA as FEATURES
from problems.difficulty.features import features
from problems.parquet_file import reading_parquet
from problems.schema import Problem, from_row, problem_schema, to_row

ROW_GROUP = 10_000  # rows of a file that are written, and in memory, at once
# The splits that verl reads. Demonstrations are for the warm-up, which reads problems.parquet.
SPLITS = ("train", "validation")
FACTS = pa.schema(
    [
        *((name, pa.string()) for name in ("source", "split", "style", "licence", "made_by")),
        ("tags", pa.list_(pa.string())),
        ("content_hash", pa.string()),
        ("agreement", pa.float64()),
        *(field for field in FEATURES if field.name != "difficulty"),
    ]
)


def write_shard(problems: Sequence[Problem], folder: Folder, name: str) -> str:
    """Write the tables of a shard, problems in the order of the ids; return its name."""
    ordered = sorted(problems, key=lambda problem: problem.problem_id)
    rows = [to_row(problem) for problem in ordered]
    tables = {
        "problems": pa.Table.from_pylist(rows, schema=problem_schema()),
        "facts": pa.Table.from_pylist([_facts(problem) for problem in ordered], schema=FACTS),
    }
    for split in SPLITS:
        tables[split] = verl_table([problem for problem in ordered if problem.split == split])
    for kind, table in tables.items():
        folder.write(f"{name}.{kind}.parquet", parquet_bytes(table))
    return name


def _facts(problem: Problem) -> dict[str, Any]:
    return asdict(features(problem)) | {
        "source": problem.source,
        "split": problem.split,
        "style": problem.style,
        "licence": problem.licence,
        "made_by": str(problem.extra.get("made_by", "")),
        "tags": list(problem.tags),
        "content_hash": problem.content_hash,
        "agreement": problem.agreement,
    }


def parquet_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=ROW_GROUP, compression="zstd")
    return bytes(sink.getvalue().to_pybytes())


@dataclass(frozen=True)
class Shards:
    """Shards in a folder, by name, in the order of the ids."""

    folder: Folder
    names: Sequence[str]

    def tables(self, kind: str, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the rows of a kind (`problems`, `facts`, or a split), ROW_GROUP at most at once."""
        for name in self.names:
            with (
                reading_parquet(self.folder.at(f"{name}.{kind}.parquet")),
                self.folder.open(f"{name}.{kind}.parquet") as file,
                pq.ParquetFile(file) as parquet,
            ):
                for batch in parquet.iter_batches(ROW_GROUP, columns=columns):
                    yield pa.Table.from_batches([batch])

    def facts(self, *columns: str) -> Iterator[tuple[Any, ...]]:
        """Yield these facts of each problem."""
        for table in self.tables("facts", columns):
            yield from zip(*(table[name].to_pylist() for name in columns), strict=True)

    def problems(self, places: Iterable[int]) -> dict[int, Problem]:
        """Return the problems at these places; for a few of them."""
        wanted, problems, first = sorted(places), dict[int, Problem](), 0
        for table in self.tables("problems") if wanted else ():
            here = [place for place in wanted if first <= place < first + len(table)]
            rows = table.take([place - first for place in here]).to_pylist() if here else []
            for place, row in zip(here, rows, strict=True):
                problems[place] = from_row(row, row["problem_id"])
            first += len(table)
            if first > wanted[-1]:
                break
        return problems

    def write_problems(self, path: Path) -> None:
        """Write all problems to one file, in the schema of problems/schema.py."""
        write_tables(self.tables("problems"), problem_schema(), path)

    def write_verl(self, split: str, path: Path) -> int:
        """Write verl's rows of a split to one file; none without rows. Return their number."""
        count = sum(int(one == split) for (one,) in self.facts("split"))
        if count:
            write_tables(_indexed(self.tables(split)), verl_schema(), path)
        return count


def write_tables(tables: Iterable[pa.Table], schema: pa.Schema, path: Path) -> None:
    """Write tables to one file in row groups of ROW_GROUP rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rest = schema.empty_table()
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for table in tables:
            rest = pa.concat_tables([rest, table.replace_schema_metadata(schema.metadata)])
            while len(rest) >= ROW_GROUP:
                writer.write_table(rest.slice(0, ROW_GROUP).combine_chunks())
                rest = rest.slice(ROW_GROUP)
        if len(rest) or not path.stat().st_size:
            writer.write_table(rest.combine_chunks())


def _indexed(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Number the rows over all shards, as `extra_info.index`."""
    first = 0
    for table in tables:
        info = table["extra_info"].combine_chunks()
        names = [field.name for field in info.type]
        children = [info.field(name) for name in names]
        children[names.index("index")] = pa.array(range(first, first + len(table)), pa.int64())
        column = pa.StructArray.from_arrays(children, names)
        yield table.set_column(table.schema.get_field_index("extra_info"), "extra_info", column)
        first += len(table)
