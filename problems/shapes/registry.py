"""Recognize the shape of a published row and read it into the columns of the schema."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from artifacts.hashing import hash_text
from problems import shapes
from problems.columns import COLUMNS
from problems.reading.source import Record, Row
from problems.shapes.shape import RowShape
from sandbox.discovery import entries
from sandbox.protocol import Limits

IDS = ("problem_id", "question_id", "conversation_id", "id")
LIMITS = asdict(Limits.of_work(10.0, memory_mb=512))


# A row with the keys of several shapes has the shape with the most keys.
SHAPES = sorted(
    entries(shapes, RowShape, "name").values(), key=lambda shape: (-len(shape.keys), shape.name)
)


def shape_of(row: Row) -> RowShape | None:
    """Return the first shape that the row has; None for a row in the columns of the schema."""
    if "statement" in row:
        return None
    return next((shape for shape in SHAPES if shape.matches(row)), None)


def published_record(row: Row, where: str) -> Record | None:
    """Return the row in the columns of the schema, or None if its shape is unknown.

    Keys that the shape does not read are kept in `extra`. Raises ProblemError.
    """
    shape = shape_of(row)
    if shape is None:
        return None
    record = shape.read(row, where)
    rest = {key: value for key, value in row.items() if key not in shape.used}
    extra = {key: value for key, value in rest.items() if key not in ("id", "problem_id")}
    record["extra"] = extra | {"shape": shape.name} | record.get("extra", {})
    record.setdefault("problem_id", _id(row, record["statement"]))
    record.setdefault("licence", row.get("licence") or row.get("license") or shape.licence)
    record["limits"] = LIMITS | record.get("limits", {})
    return {
        name: value for name, value in record.items() if value is not None or name not in COLUMNS
    }


def _id(row: Row, statement: str) -> str:
    """Return the row's own id, else a hash of its statement."""
    own: Any = next((row[key] for key in IDS if row.get(key)), None)
    if isinstance(own, (str, int)):
        return str(own).strip().replace("/", "_")
    return hash_text(statement)[:12]
