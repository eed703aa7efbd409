"""The strength of tests: the share of a solution's mutants that they reject.

It is stored in a table in the dataset's folder, one row per problem.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from problems.schema import write_table
from problems.verification.mutants import SAMPLE
from problems.wilson import wilson_bounds

FILE = "strength.parquet"
SCHEMA = pa.schema(
    [
        ("problem_id", pa.string()),
        ("source", pa.string()),
        ("trainable", pa.bool_()),
        ("kept", pa.bool_()),
        ("references", pa.int64()),
        ("mutants", pa.int64()),
        ("killed", pa.int64()),
        ("survivors", pa.list_(pa.string())),
        ("added_tests", pa.int64()),
        ("equivalent", pa.int64()),
    ]
)


@dataclass(frozen=True)
class Strength:
    """Verdicts on one problem's mutants, after tests were added.

    references: number of solutions, not counting copies of each other.
    """

    problem_id: str
    source: str
    trainable: bool  # not part of a gated benchmark
    kept: bool
    references: int
    mutants: int
    killed: int
    survivors: tuple[str, ...] = ()
    added_tests: int = 0
    equivalent: int = 0  # mutants that no generated input tells from the solution; not in `mutants`

    @property
    def share(self) -> float | None:
        """The share of killed mutants in [0, 1]; None if no mutant could be made."""
        return self.killed / self.mutants if self.mutants else None

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the share; from 0 to 1 without mutants."""
        return wilson_bounds(self.killed, self.mutants)

    @property
    def doubtful(self) -> tuple[str, ...]:
        """The samples of a model that the tests accept and that act unlike the solution."""
        return tuple(name for name in self.survivors if name.startswith(f"{SAMPLE} "))

    def weak(self, threshold: float) -> bool:
        """Return whether the tests reject less than this share of the mutants.

        If no mutant can be made, nothing is known, and the tests do not count as weak.
        """
        return self.killed < threshold * self.mutants


def write(rows: Iterable[Strength], folder: Path) -> Path:
    """Write `strength.parquet` to a dataset's folder, in order of the ids.

    It has only whole numbers and text, and is part of the dataset's hash.
    """
    ordered = sorted(rows, key=lambda row: row.problem_id)
    write_table(
        pa.Table.from_pylist(
            [asdict(row) | {"survivors": list(row.survivors)} for row in ordered], schema=SCHEMA
        ),
        folder / FILE,
    )
    return folder / FILE


def read(folder: Path) -> list[Strength]:
    return [
        Strength(**row | {"survivors": tuple(row["survivors"])})
        for row in pq.read_table(folder / FILE).to_pylist()
    ]


def by_source(rows: Sequence[Strength]) -> list[tuple[object, ...]]:
    """Return a table with one row per source.

    Columns: problems, mutants, share killed, problems by share in fifths (the last: all killed),
    and problems with added tests.
    """
    table: list[tuple[object, ...]] = []
    for source in sorted({row.source for row in rows}):
        own = [row for row in rows if row.source == source]
        mutants, killed = sum(row.mutants for row in own), sum(row.killed for row in own)
        share = f"{killed / mutants:.1%}" if mutants else "none could be made"
        table.append(
            (source, len(own), mutants, share, _bars(own), sum(row.added_tests > 0 for row in own))
        )
    return table


HEAD = (
    "source",
    "problems",
    "mutants",
    "killed",
    "problems by share killed: under 20, 40, 60, 80, 100 %, all",
    "strengthened",
)


def _bars(rows: Sequence[Strength]) -> str:
    counts = [0] * 6
    for row in rows:
        if row.mutants:
            counts[5 * row.killed // row.mutants] += 1
    top = max(counts)
    return (
        " ".join(f"{'▁▂▃▄▅▆▇█'[7 * count // top] if count else '·'}{count}" for count in counts)
        if top
        else ""
    )


WEAKEST = ("problem", "killed", "of", "share killed (95 %)", "survivors")


def _with_interval(row: Strength) -> str:
    low, high = row.interval
    return f"{row.killed / row.mutants:.0%} ({low:.0%} to {high:.0%})"


def weakest(rows: Iterable[Strength], count: int = 10) -> list[tuple[object, ...]]:
    """Return the problems whose tests let most mutants pass, among those with survivors."""
    ordered = sorted(
        (row for row in rows if row.survivors),
        key=lambda row: (row.killed / row.mutants, row.problem_id),
    )
    return [
        (row.problem_id, row.killed, row.mutants, _with_interval(row), "; ".join(row.survivors))
        for row in ordered[:count]
    ]


DOUBTFUL = ("problem", "accepted samples that act unlike the solution", "which")


def doubtful(rows: Iterable[Strength], count: int = 10) -> list[tuple[object, ...]]:
    """Return the problems whose tests accept most doubtful samples: they likely accept wrong ones.

    A wrong sample that the tests accept shows more than a mutant does (docs/measurements/data.md).
    """
    ordered = sorted(
        (row for row in rows if row.doubtful), key=lambda row: (-len(row.doubtful), row.problem_id)
    )
    return [(row.problem_id, len(row.doubtful), ", ".join(row.doubtful)) for row in ordered[:count]]
