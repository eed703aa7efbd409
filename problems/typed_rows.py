"""Read a file whose rows have a type: JSON lines or parquet, from any collector."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from problems.columns import ProblemError
from problems.parquet_file import reading_parquet

Row = TypeVar("Row", bound=BaseModel)


def typed_rows(path: Path, kind: type[Row]) -> list[tuple[str, Row]]:
    """Read all rows of a `.jsonl` or `.parquet` file, each with its place; a null is a missing key.

    Raises ProblemError naming the file, the row and what is wrong.
    """
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        with reading_parquet(str(path)):
            table = pq.read_table(path, partitioning=None).to_pylist()
        rows = [(f"{path}: row {at}", row) for at, row in enumerate(table)]
    else:
        rows = _lines(path)
    typed = []
    for place, row in rows:
        try:
            values = {key: value for key, value in row.items() if value is not None}
            typed.append((place, kind.model_validate(values)))
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(map(str, first["loc"])) or "row"
            raise _bad_row(place, f"{key}: {first['msg']}") from error
    return typed


def _lines(path: Path) -> list[tuple[str, dict[str, Any]]]:
    rows = []
    # Not splitlines: a text may contain other line separators.
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        if not line.strip():
            continue
        place = f"{path}: line {number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise _bad_row(place, f"invalid JSON ({error})") from error
        if not isinstance(row, dict):
            raise _bad_row(place, "not an object")
        rows.append((place, row))
    return rows


def _bad_row(place: str, reason: str) -> ProblemError:
    return ProblemError(reason, "fix or delete the row", place)
