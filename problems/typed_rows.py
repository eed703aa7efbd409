"""Read a file whose rows have a type: JSON lines or parquet, from any collector."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from problems.columns import ProblemError
from problems.parquet_file import reading_parquet

Row = TypeVar("Row", bound=BaseModel)


def typed_rows(path: Path, kind: type[Row]) -> list[Row]:
    """Read all rows of a `.jsonl` or `.parquet` file; a null is a missing key.

    Raises ProblemError naming the file, the row and what is wrong.
    """
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        with reading_parquet(str(path)):
            rows = pq.read_table(path, partitioning=None).to_pylist()
    else:
        rows = _lines(path)
    typed = []
    for number, row in enumerate(rows):
        try:
            values = {key: value for key, value in row.items() if value is not None}
            typed.append(kind.model_validate(values))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"])) or "row"
            raise _bad_row(path, number, f"{place}: {first['msg']}") from error
    return typed


def _lines(path: Path) -> list[dict[str, Any]]:
    rows = []
    # Not splitlines: a text may contain other line separators.
    for number, line in enumerate(path.read_bytes().split(b"\n")):
        try:
            row = json.loads(line) if line.strip() else {}
        except ValueError as error:
            raise _bad_row(path, number, f"invalid JSON ({error})") from error
        if not isinstance(row, dict):
            raise _bad_row(path, number, "not an object")
        rows += [row] if line.strip() else []
    return rows


def _bad_row(path: Path, number: int, reason: str) -> ProblemError:
    return ProblemError(reason, "fix or delete the row", f"{path}: row {number}")
