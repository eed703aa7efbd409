"""Read rows from tables: Parquet, and Arrow as `datasets` saves it."""

from __future__ import annotations

import contextlib
import datetime
import decimal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from problems.columns import ProblemError
from problems.parquet_file import incomplete
from problems.reading.row_size import MAX_ROW_BYTES, size_of, too_large
from problems.reading.source import Read

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 256


def batch_rows(table: pa.Table | pa.RecordBatch, where: str, start: int) -> Iterator[Read]:
    """Yield the rows of a table as JSON would hold them: dates, decimals and UTF-8 as text."""
    sized = table.nbytes > MAX_ROW_BYTES
    for number, row in enumerate(table.to_pylist(), start):
        location = f"{where} row {number}"
        plain = _plain(row)
        if column := next((name for name in plain if _is_filled(plain[name])), None):
            yield location, _filled(column, location)
        elif sized and (size := size_of(plain)) > MAX_ROW_BYTES:
            yield location, too_large(size, location)
        else:
            yield location, plain


def table_rows(file: Path) -> Iterator[Read]:
    """Yield the rows of a file, and an error where it breaks off. Raises ProblemError at once."""
    import pyarrow as pa

    read = 0
    try:
        for batch in _batches(file):
            yield from batch_rows(batch, f"{file}:", read)
            read += len(batch)
    except (pa.ArrowException, OSError) as error:
        if not read:
            raise incomplete(error, str(file), kind=file.suffix[1:]) from error
        where = f"{file}: after row {read - 1}"
        yield where, incomplete(error, where, kind=file.suffix[1:])


def _batches(file: Path) -> Iterator[pa.RecordBatch]:
    """Yield a file's tables: of Parquet, or of Arrow as `datasets` saves it or as a file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if file.suffix == ".parquet":
        with pq.ParquetFile(file) as parquet:
            yield from parquet.iter_batches(batch_size=BATCH)
        return
    with pa.OSFile(str(file)) as content:
        whole = content.read(6) == b"ARROW1"
        content.seek(0)
        if whole:
            reader = pa.ipc.open_file(content)
            yield from map(reader.get_batch, range(reader.num_record_batches))
        else:
            yield from pa.ipc.open_stream(content)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return value if not value or isinstance(value[0], str) else [_plain(item) for item in value]
    if isinstance(value, bytes):
        with contextlib.suppress(UnicodeDecodeError):  # the reader of the column refuses it
            return value.decode()
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    return str(value) if isinstance(value, (decimal.Decimal, datetime.timedelta)) else value


def _is_filled(tests: Any) -> bool:
    """Return whether the values of tests hold objects with null: in a column of structs each has
    every key that occurs in the column, so a null may be a key that the test does not have.
    """
    return isinstance(tests, list | dict) and any(
        _has_null(test.get(part))
        for test in (tests if isinstance(tests, list) else [tests])
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
