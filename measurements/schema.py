"""Reading problems: the checks of `problems/` compared with a pydantic model of the same columns.

    python -m measurements.schema                     10,000 rows of the embedded family
    python -m measurements.schema --problems 1000

For each: CPU seconds from rows of a parquet file to problems, the values of a test that change in
JSON, and the error of a row with a misspelled column.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from itertools import cycle, islice
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, Json, TypeAdapter, ValidationError
from pydantic_core import to_json

from problems.columns import LIMIT_KEYS, ProblemError
from problems.embedded.compositional import FamilyConfig, generate
from problems.encoding import dumps, loads
from problems.schema import from_row, to_row
from sandbox.protocol import Compare, Style

VALUES = ((1, 2), {1, 2}, frozenset({1}), 2**70, b"\xff", 1 + 2j, math.inf, {1: 2}, [1, "a", None])
Text = Annotated[str, Field(min_length=1)]
Limit = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Row(BaseModel):
    """The columns of problems/columns.py as a pydantic model."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)

    problem_id: Text
    source: Text
    statement: Text
    style: Style
    tests: Annotated[list[Json[dict[str, Any]]], Field(min_length=1)]
    entry_point: str | None = None
    starter_code: str = ""
    solutions: list[str] = []
    visible_tests: Annotated[int, Field(ge=0)] = 0
    limits: dict[Literal[LIMIT_KEYS], Limit] = {}  # type: ignore[valid-type]
    tolerance: Annotated[float, Field(ge=0)] | None = None
    tags: list[str] = []
    split: Literal["demonstrations", "train", "validation", "heldout"] = "train"
    licence: str = "unknown"
    gated: bool = False
    extra: Json[dict[str, Any]] = {}
    compare: Compare = "exact"
    checker: str | None = None


def seconds(read: Callable[[dict[str, Any]], object], rows: list[dict[str, Any]]) -> float:
    """Return the least CPU seconds of three passes over the rows."""

    def once() -> float:
        begun = time.process_time()
        for row in rows:
            read(row)
        return time.process_time() - begun

    return min(once() for _ in range(3))


def changed_values(round_trip: Callable[[Any], Any]) -> list[str]:
    """Return the values that differ after they are written as JSON and read again."""

    def same(value: Any) -> bool:
        try:
            back = round_trip(value)
        except (ValueError, TypeError):
            return False
        return type(back) is type(value) and bool(back == value)

    return [repr(value) for value in VALUES if not same(value)]


def error_of(read: Callable[[dict[str, Any]], object], row: dict[str, Any]) -> str:
    try:
        read(row)
    except (ProblemError, ValidationError) as error:
        return " ".join(str(error).split())
    return "none"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problems", type=int, default=10_000)
    count = parser.parse_args().problems
    family = generate(FamilyConfig(demonstrations=1, train=2000, validation=1))
    rows = list(islice(cycle(map(to_row, family)), count))
    misspelled = {("statment" if key == "statement" else key): v for key, v in rows[0].items()}
    anything: TypeAdapter[Any] = TypeAdapter(Any)
    readers: dict[str, tuple[Callable[[dict[str, Any]], object], Callable[[Any], Any]]] = {
        "problems/": (lambda row: from_row(row, "row"), lambda value: loads(dumps(value))),
        "pydantic": (Row.model_validate, lambda v: anything.validate_json(to_json(v))),
    }
    for name, (read, round_trip) in readers.items():
        print(f"{name}: {seconds(read, rows):.2f} s for {len(rows)} rows")
        print(f"  changed: {', '.join(changed_values(round_trip)) or 'nothing'}")
        print(f"  error: {error_of(read, misspelled)}")


if __name__ == "__main__":
    main()
