"""DeepCoder-Preview-Dataset: its parts `primeintellect`, `taco`, `lcbv5` and `codeforces`.

`problem`, `tests` as JSON text, `solutions` in fences (none in `lcbv5` and `codeforces`),
`starter_code`, and `metadata` with `func_name`. Without it, the only function of the starter code
is called.
"""

from __future__ import annotations

from collections.abc import Mapping

from problems.reading.cases import read_tests, solved, value_of
from problems.reading.prose import programs, statement
from problems.reading.source import Record, Row
from problems.shapes.shape import RowShape


def read(row: Row, where: str) -> Record:
    """Read a row of `train-*.parquet` or `test-*.parquet` of any part."""
    metadata = value_of(row.get("metadata") or {}, "metadata", where)
    name = metadata.get("func_name") if isinstance(metadata, Mapping) else None
    solutions = programs(row.get("solutions"))
    starter = str(row.get("starter_code") or "")
    record = read_tests(
        row["tests"], "tests", where, name, "\n".join([starter, *solutions[:1]])
    ) | {"statement": statement(row, "problem", where)}
    if starter:
        record["extra"] = record.get("extra", {}) | {"signature": starter}
    return solved(record, solutions)


DEEPCODER = RowShape(
    "deepcoder",
    "DeepCoder-Preview-Dataset (primeintellect, taco, lcbv5, codeforces)",
    ("problem", "tests"),
    read,
    ("problem", "tests", "solutions", "starter_code"),
    "MIT",
)
