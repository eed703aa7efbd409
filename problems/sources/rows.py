"""Rows out of a local file, a folder, or the hub. A row that cannot be read is an error in its place; the rows after it go on."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from problems.record import ProblemError
from problems.sources.source import Row, Source

SUFFIXES = (".jsonl", ".json", ".jsonl.gz", ".json.gz", ".parquet")
MAX_ROW_BYTES = 64 * 2**20  # HumanEval+ has rows of 1 MiB; beyond this a row is a mistake, and would be one for every stage after

Read = tuple[str, Row | ProblemError]  # where the row lies, and the row or why there is none


def local_rows(source: Source, path: Path) -> Iterator[Read]:
    """Rows of a file or of a folder's files. Raises FileNotFoundError or ProblemError when there is nothing to read."""
    for file in _files(source, path):
        empty = True
        for read in _file_rows(file):
            empty = False
            yield read
        if empty:
            raise ProblemError("the file is empty", "put one problem on each line, or remove the source", str(file))


def hub_rows(source: Source) -> Iterator[Read]:
    """Rows of all splits of a hub dataset, in the hub's order. Raises ProblemError when the hub cannot be reached."""
    if source.hub_id is None:
        raise ProblemError("a source without a hub id", f"give a local path: ratchet data add {source.name} --path FILE", source.name)
    import datasets

    try:
        splits = datasets.load_dataset(source.hub_id, source.hub_config)
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        reason = f"hub dataset {source.hub_id} cannot be read ({type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''})"
        raise ProblemError(reason, f"check the network, or give a local path: ratchet data add {source.name} --path FILE", source.name) from error
    for split, rows in splits.items():
        for number, row in enumerate(rows):
            yield f"{source.hub_id}: {split} row {number}", row


def _files(source: Source, path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise FileNotFoundError(f"source {source.name}: {path} does not exist: check the path given to `ratchet data add {source.name} --path`")
    if source.files:
        found = [path / name for name in source.files if (path / name).is_file()][:1]
    else:
        found = sorted(file for file in path.iterdir() if file.is_file() and file.name.endswith(SUFFIXES))
    if not found:
        raise FileNotFoundError(f"source {source.name}: no {' or '.join(source.files or SUFFIXES)} in {path}: give the file itself")
    return found


def _file_rows(file: Path) -> Iterator[Read]:
    if not file.name.endswith(SUFFIXES):
        raise ProblemError(f"ending {file.suffix or '(none)'} is unknown", f"use one of {', '.join(SUFFIXES)}", str(file))
    if file.suffix == ".parquet":
        yield from _parquet_rows(file)
        return
    with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as lines:
        if ".jsonl" in file.name:
            yield from _lines(file, lines)
        else:
            yield from _whole(file, lines.read())


def _lines(file: Path, lines: Iterable[bytes]) -> Iterator[Read]:
    number = 0
    try:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield _parsed(f"{file}: line {number}", line)
    except (EOFError, OSError) as error:  # a cut-off or broken gzip: what was read stays
        where = f"{file}: after line {number}"
        yield where, ProblemError(f"the file cannot be read on ({error})", "fetch the file again", where)


def _whole(file: Path, content: bytes) -> Iterator[Read]:
    if not content.strip():
        return
    where, rows = _parsed(str(file), content, limit=None, shape=list)
    if not isinstance(rows, list):
        yield where, rows
        return
    for number, row in enumerate(rows):
        where = f"{file}: row {number}"
        yield (
            where,
            row if isinstance(row, dict) else ProblemError(f"{type(row).__name__} instead of an object", "write each problem as {...}", where),
        )


def _parsed(where: str, content: bytes, limit: int | None = MAX_ROW_BYTES, shape: type = dict) -> tuple[str, Any]:
    if limit and len(content) > limit:
        return where, ProblemError(f"a row of {len(content) >> 20} MiB", f"at most {limit >> 20} MiB: shorten its statement or tests", where)
    try:
        value = json.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        return where, ProblemError(f"byte {error.start} is not UTF-8", "save the file as UTF-8 (iconv -f latin1 -t utf-8)", where)
    except json.JSONDecodeError as error:
        return where, ProblemError(f"broken JSON: {error.msg} at line {error.lineno} column {error.colno}", "mend or remove it", where)
    except (RecursionError, ValueError) as error:
        return where, ProblemError(f"JSON that cannot be read: {error}", "mend or remove it", where)
    if not isinstance(value, shape):
        wanted = "a list of problems, [{...}, ...]" if shape is list else "an object, {...}"
        return where, ProblemError(f"{type(value).__name__} instead of {wanted}", f"write {wanted}", where)
    return where, value


def _parquet_rows(file: Path) -> Iterator[Read]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows = pq.read_table(file, partitioning=None).to_pylist()
    except pa.ArrowException as error:
        raise ProblemError(f"not a whole parquet file ({str(error).splitlines()[0]})", "fetch or write it again", str(file)) from error
    for number, row in enumerate(rows):
        yield f"{file}: row {number}", row
