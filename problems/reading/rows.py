"""Read rows from local files.

An unreadable row is returned as an error in its place; the rows after it, and the other files of a
folder, are still read. At most one batch of rows is in memory at a time, and no row larger than
MAX_ROW_BYTES is accepted.
"""

from __future__ import annotations

import datetime
import decimal
import gzip
import json
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from problems.columns import ProblemError
from problems.parquet_file import incomplete
from problems.reading.csv_rows import csv_rows
from problems.reading.source import SPLIT, Row, Source
from sandbox.reading import shown

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIXES = (".jsonl", ".json", ".csv", ".jsonl.gz", ".json.gz", ".csv.gz", ".parquet")
# HumanEval+ has rows of 1 MiB. A much larger row is a mistake and would fail in every later stage.
MAX_ROW_BYTES = 64 * 2**20
MAX_LIST_BYTES = 2**30  # of a .json file, which is read as a whole
BATCH = 256

Read = tuple[str, Row | ProblemError]  # the row's location, and the row or the error


def local_rows(source: Source, path: Path) -> Iterator[Read]:
    """Yield the rows of a file or of a folder's files.

    Raises FileNotFoundError or ProblemError when there is nothing to read. If one of several files
    cannot be read, its error takes its place, unless all files fail.
    """
    files, failed = _files(source, path), list[ProblemError]()
    for file in files:
        try:
            yield from _with_split(source, file, _not_empty_rows(file))
        except ProblemError as error:
            failed.append(error)
            if len(failed) == len(files):
                raise
            yield str(file), error


def batch_rows(table: pa.Table | pa.RecordBatch, where: str, start: int) -> Iterator[Read]:
    """Yield the rows of a table as JSON would hold them: dates and decimals as text."""
    sized = table.nbytes > MAX_ROW_BYTES
    for number, row in enumerate(table.to_pylist(), start):
        location = f"{where} row {number}"
        plain = _plain(row)
        if column := next((name for name in plain if _is_filled(plain[name])), None):
            yield location, _filled(column, location)
        elif sized and (size := _size(plain)) > MAX_ROW_BYTES:
            yield location, _too_large(size, location)
        else:
            yield location, plain


def _not_empty_rows(file: Path) -> Iterator[Read]:
    """Raise ProblemError when there is no row at all."""
    empty = True
    for read in _file_rows(file):
        empty = False
        yield read
    if empty:
        raise ProblemError(
            "the file is empty", "put one problem on each line, or remove the source", str(file)
        )


def _with_split(source: Source, file: Path, rows: Iterable[Read]) -> Iterator[Read]:
    split = (
        re.search(r"(?:^|[^a-z])(train|test|valid|validation)(?:[^a-z]|$)", file.name.lower())
        if source.by_split
        else None
    )
    for where, row in rows:
        yield where, row if isinstance(row, ProblemError) or not split else {**row, SPLIT: split[1]}


def _files(source: Source, path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise FileNotFoundError(f"source {source.name}: {path} does not exist: check the path")
    if source.files:
        files = [path / name for name in source.files if (path / name).is_file()]
        files = files if source.all_files else files[:1]
    else:
        files = sorted(
            file for file in path.iterdir() if file.is_file() and file.name.endswith(SUFFIXES)
        )
    if not files:
        raise FileNotFoundError(
            f"source {source.name}: no {' or '.join(source.files or SUFFIXES)} in {path}: "
            "give the file itself"
        )
    return files


def _file_rows(file: Path) -> Iterator[Read]:
    if not file.name.endswith(SUFFIXES):
        raise ProblemError(
            f"ending {file.suffix or '(none)'} is unknown",
            f"use one of {', '.join(SUFFIXES)}",
            str(file),
        )
    if file.suffix == ".parquet":
        yield from _parquet_rows(file)
        return
    if file.name.endswith((".csv", ".csv.gz")):
        yield from _csv_rows(file)
        return
    with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as content:
        yield from _lines(file, content) if ".jsonl" in file.name else _list_rows(file, content)  # type: ignore[arg-type]  # a GzipFile is an IO[bytes]


def _csv_rows(file: Path) -> Iterator[Read]:
    opened = gzip.open if file.suffix == ".gz" else open
    try:
        with opened(
            file, "rt", encoding="utf-8-sig", errors="surrogateescape", newline=""
        ) as content:
            yield from csv_rows(file, content, MAX_ROW_BYTES)
    except (EOFError, OSError) as error:  # a truncated or broken gzip
        where = f"{file}: at its end"
        yield (
            where,
            ProblemError(f"the file cannot be read on ({error})", "fetch the file again", where),
        )


def _lines(file: Path, content: IO[bytes]) -> Iterator[Read]:
    number = 0
    try:
        while line := content.readline(MAX_ROW_BYTES + 1):
            number, where, size = number + 1, f"{file}: line {number + 1}", len(line)
            rest = line
            # skips the rest of a line that is too long
            while not rest.endswith(b"\n") and (rest := content.readline(MAX_ROW_BYTES)):
                size += len(rest)
            if size > MAX_ROW_BYTES:
                yield where, _too_large(size, where)
            elif line.strip():
                yield _parsed(where, line)
    except (EOFError, OSError) as error:  # a truncated or broken gzip: the rows read so far stay
        where = f"{file}: after line {number}"
        yield (
            where,
            ProblemError(f"the file cannot be read on ({error})", "fetch the file again", where),
        )


def _list_rows(file: Path, content: IO[bytes]) -> Iterator[Read]:
    try:
        read = content.read(MAX_LIST_BYTES + 1)
    except (EOFError, OSError) as error:
        raise ProblemError(
            f"the file cannot be read ({error})", "fetch the file again", str(file)
        ) from error
    if len(read) > MAX_LIST_BYTES:
        raise ProblemError(
            f"a list of more than {MAX_LIST_BYTES >> 20} MiB",
            "write it as JSON lines, a problem each (.jsonl)",
            str(file),
        )
    if not read.strip():
        return
    where, rows = _parsed(str(file), read, shape=list)
    if not isinstance(rows, list):
        yield where, rows
        return
    for number, row in enumerate(rows):
        where = f"{file}: row {number}"
        if not isinstance(row, dict):
            yield (
                where,
                ProblemError(
                    f"{shown(row)} instead of an object", "write each problem as {...}", where
                ),
            )
        elif len(read) > MAX_ROW_BYTES and (size := _size(row)) > MAX_ROW_BYTES:
            yield where, _too_large(size, where)
        else:
            yield where, row


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object. Raises ValueError for a key that occurs twice."""
    value = dict(pairs)
    if len(value) < len(pairs):
        key = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"an object has the key {key!r} twice")
    return value


def _parsed(where: str, content: bytes, shape: type = dict) -> tuple[str, Any]:
    try:
        value = json.loads(content.decode("utf-8-sig"), object_pairs_hook=_object)
    except UnicodeDecodeError as error:
        encoding = "utf-16" if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "latin1"
        return where, ProblemError(
            f"byte {error.start} is not UTF-8",
            f"save the file as UTF-8 (iconv -f {encoding} -t utf-8)",
            where,
        )
    except json.JSONDecodeError as error:
        # The line number of a JSONL row is already in `where`.
        place = (
            f"line {error.lineno} column {error.colno}"
            if shape is list
            else f"column {error.pos + 1}"
        )
        return where, ProblemError(
            f"broken JSON: {error.msg} at {place}", "fix or remove it", where
        )
    except (RecursionError, ValueError) as error:
        return where, ProblemError(f"JSON that cannot be read: {error}", "fix or remove it", where)
    if not isinstance(value, shape):
        expected = "a list of problems, [{...}, ...]" if shape is list else "an object, {...}"
        return where, ProblemError(
            f"{shown(value)} instead of {expected}", f"write {expected}", where
        )
    return where, value


def _parquet_rows(file: Path) -> Iterator[Read]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    read = 0
    try:
        with pq.ParquetFile(file) as parquet:
            for batch in parquet.iter_batches(batch_size=BATCH):
                yield from batch_rows(batch, f"{file}:", read)
                read += len(batch)
    except (pa.ArrowException, OSError) as error:
        if not read:
            raise incomplete(error, str(file)) from error
        where = f"{file}: after row {read - 1}"
        yield where, incomplete(error, where)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return value if not value or isinstance(value[0], str) else [_plain(item) for item in value]
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    return str(value) if isinstance(value, (decimal.Decimal, datetime.timedelta)) else value


def _is_filled(tests: Any) -> bool:
    """Return whether the values of tests hold objects with null: in a column of structs each has
    every key that occurs in the column, so a null may be a key that the test does not have.
    """
    return isinstance(tests, list) and any(
        _has_null(test.get(part))
        for test in tests
        if isinstance(test, dict)
        for part in ("args", "kwargs", "expected")
    )


def _has_null(value: Any) -> bool:
    if isinstance(value, dict):
        return None in value.values() or any(map(_has_null, value.values()))
    return isinstance(value, list) and any(map(_has_null, value))


def _filled(column: str, where: str) -> ProblemError:
    return ProblemError(
        f"column {column!r} has structs with null: Parquet gives each test every key of the column",
        "write the tests as JSON text",
        where,
    )


def _size(row: Any) -> int:
    return len(json.dumps(row, default=str))


def _too_large(size: int, where: str) -> ProblemError:
    return ProblemError(
        f"a row of {size >> 20} MiB",
        f"at most {MAX_ROW_BYTES >> 20} MiB: shorten its statement or tests",
        where,
    )
