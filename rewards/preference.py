"""What people prefer. In: choices between two answers to one task. Out: a value in [-1, 1] for each answer that was ever shown.

The contract is a row a choice, as JSON lines or parquet (`SCHEMA`), whoever collects them. Strengths are Bradley and Terry's (1952), fitted a task
by the iteration of Hunter 2004 (doi:10.1214/aos/1079120141, section 2); a tie is half a win for each.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

PRIOR = 0.5  # wins and losses against an answer of average strength that each is thought to have: keeps the undefeated finite
ROUNDS, CLOSE = 1000, 1e-9


class Choice(BaseModel):
    """One choice. `left` and `right` are the answers as they were shown, whole."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    problem_id: str
    left: str
    right: str
    chosen: Literal["left", "right", "tie"]
    judge: str = ""  # who chose: a pseudonym
    at: str = ""  # when, ISO 8601

    @model_validator(mode="after")
    def two_answers(self) -> Choice:
        if self.left == self.right:
            raise ValueError("left and right are the same answer: nothing was chosen")
        return self


def schema() -> Any:
    """The columns of a parquet file of choices, all text; `judge` and `at` may be missing or null."""
    import pyarrow as pa

    return pa.schema([(name, pa.string()) for name in Choice.model_fields])


def read_choices(path: Path) -> list[Choice]:
    """All choices of a `.jsonl` or `.parquet` file. Raises ValueError naming file, row and what is wrong."""
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        rows = pq.read_table(path, partitioning=None).to_pylist()
    else:
        rows = _rows(path)
    choices = []
    for number, row in enumerate(rows):
        try:
            choices.append(
                Choice.model_validate(
                    {key: value for key, value in row.items() if value is not None}
                )
            )
        except ValidationError as error:
            first = error.errors()[0]
            raise ValueError(
                f"{path}: row {number}: {'.'.join(map(str, first['loc'])) or 'row'}: {first['msg']}"
            ) from error
    return choices


def write_choices(choices: Iterable[Choice], path: Path) -> None:
    """JSON lines or parquet, by the name's ending."""
    rows = [choice.model_dump() for choice in choices]
    if path.suffix != ".parquet":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return
    import pyarrow as pa

    from problems.schema import write_table

    write_table(pa.Table.from_pylist(rows, schema=schema()), path)


def _rows(path: Path) -> list[dict[str, Any]]:
    rows = []
    for number, line in enumerate(
        path.read_bytes().split(b"\n")
    ):  # not splitlines: an answer may hold other ends of lines
        try:
            rows += [json.loads(line)] if line.strip() else []
        except ValueError as error:
            raise ValueError(
                f"{path}: row {number}: broken JSON ({error}): write the row again, or leave it out"
            ) from error
    return rows


class Preferences:
    """Values of the answers that people chose between. An answer is known by problem and text; one that was never shown has none."""

    def __init__(self, choices: Iterable[Choice]) -> None:
        by_problem: dict[str, list[Choice]] = defaultdict(list)
        for choice in choices:
            by_problem[choice.problem_id].append(choice)
        self._values = {
            (name, _key(text)): value
            for name, rows in by_problem.items()
            for text, value in bradley_terry(rows).items()
        }

    def value(self, problem_id: str, answer: str) -> float | None:
        return self._values.get((problem_id, _key(answer)))


def bradley_terry(choices: Iterable[Choice]) -> dict[str, float]:
    """Answer -> 2 p - 1, p its chance to be chosen over an answer of average strength (the geometric mean): in (-1, 1), 0 for the average."""
    wins: dict[str, float] = defaultdict(lambda: PRIOR)
    met: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for choice in choices:
        share = {"left": 1.0, "right": 0.0, "tie": 0.5}[choice.chosen]
        wins[choice.left] += share
        wins[choice.right] += 1.0 - share
        met[choice.left][choice.right] += 1
        met[choice.right][choice.left] += 1
    strength = dict.fromkeys(sorted(met), 1.0)
    for _ in range(ROUNDS):
        new = {
            one: wins[one]
            / (
                2 * PRIOR / (strength[one] + 1.0)
                + sum(
                    n / (strength[one] + strength[other]) for other, n in sorted(met[one].items())
                )
            )
            for one in strength
        }
        moved = max((abs(new[one] - strength[one]) / strength[one] for one in new), default=0.0)
        strength = new
        if moved < CLOSE:
            break
    return {one: (power - 1.0) / (power + 1.0) for one, power in strength.items()}


def _key(answer: str) -> str:
    return hashlib.sha256(answer.strip().encode("utf-8", "surrogatepass")).hexdigest()
