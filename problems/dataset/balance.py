"""Compute how often to draw each training problem, so that common kinds do not crowd out rare ones.

This gives weights and never deletes a problem. In: problems, and their difficulties. Out: a weight
per problem, 1 on average, and a table of each group's share before and after.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import prod
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from problems.schema import Problem, write_table

# 0: every weight is 1; 1: every group has the same share; values between as for languages in
# Conneau et al. 2020
TEMPERATURE = 0.5
CAP = 4.0  # weights are limited to [1 / CAP, CAP] before they are scaled to mean 1
LEVELS = 5  # equally wide buckets of difficulty: 1 easy to 5 hard


@dataclass(frozen=True)
class Weight:
    """How often to draw a problem, relative to the mean of 1.

    The `level` of difficulty rests on a measured pass rate if `measured`, else on the static score.
    """

    problem_id: str
    style: str
    level: int
    measured: bool
    weight: float


SCHEMA = pa.schema(
    [
        ("problem_id", pa.string()),
        ("style", pa.string()),
        ("level", pa.int64()),
        ("measured", pa.bool_()),
        ("weight", pa.float64()),
    ]
)
Share = tuple[str, str, int, float, float]  # axis, group, problems, share before, share after


def weigh(
    problems: Iterable[Problem],
    static: Mapping[str, float],
    pass_rates: Mapping[str, float] | None = None,
) -> list[Weight]:
    """Return the weights of the training problems, by id.

    A weight is the geometric mean over style, level and tags of (fair share / own share) **
    `TEMPERATURE`, capped. It is the mean and not the product because the axes say much the same (a
    source often has one style and one tag), so a product would make rare kinds common.

    static: a difficulty in [0, 1] for every problem. pass_rates: where known, they determine the
    level instead. A problem with several tags takes the mean over them; one without tags has the
    tag "".
    """
    train = sorted(
        (problem for problem in problems if problem.split == "train"),
        key=lambda problem: problem.problem_id,
    )
    hard = {problem_id: 1 - rate for problem_id, rate in (pass_rates or {}).items()}
    rows = [
        Drawn(
            problem.problem_id,
            problem.style,
            problem.tags,
            level(hard.get(problem.problem_id, static[problem.problem_id])),
            problem.problem_id in hard,
        )
        for problem in train
    ]
    return list(weights_of(lambda: rows))


class Drawn(NamedTuple):
    """What the weight of a training problem depends on."""

    problem_id: str
    style: str
    tags: Sequence[str]
    level: int
    measured: bool = False

    @property
    def groups(self) -> tuple[Sequence[str], ...]:
        """Its groups on each axis: style, level, tags."""
        return (self.style,), (str(self.level),), self.tags or ("",)


def weights_of(rows: Callable[[], Iterable[Drawn]]) -> Iterator[Weight]:
    """Yield the weights of training problems, as `weigh` does. rows: read three times."""
    axes = tuple(Counter[str]() for _ in range(3))
    for row in rows():
        for counts, groups in zip(axes, row.groups, strict=True):
            counts.update(groups)
    factors = [
        {
            group: (counts.total() / len(counts) / count) ** TEMPERATURE
            for group, count in counts.items()
        }
        for counts in axes
    ]
    raw = np.fromiter((_raw(row, factors) for row in rows()), float)
    mean = fmean(raw) if raw.size else 1.0
    for row, weight in zip(rows(), raw, strict=True):
        yield Weight(
            row.problem_id, row.style, row.level, row.measured, round(float(weight) / mean, 6)
        )


def _raw(row: Drawn, factors: Sequence[Mapping[str, float]]) -> float:
    """Return the weight before scaling: how rare the groups of a problem are."""
    means = [
        fmean(factor[group] for group in groups)
        for factor, groups in zip(factors, row.groups, strict=True)
    ]
    return min(CAP, max(1 / CAP, prod(means) ** (1 / len(means))))


def level(difficulty: float) -> int:
    """Return the level from 1 (easy) to `LEVELS` (hard) of a difficulty in [0, 1]."""
    return min(int(difficulty * LEVELS), LEVELS - 1) + 1


def shares(problems: Iterable[Problem], weights: Sequence[Weight]) -> list[Share]:
    """Return the size of each source, style, level and tag, and its share of the draws.

    The share is given for equal weights and for these weights.
    """
    by_id = {problem.problem_id: problem for problem in problems}
    sizes = Sizes()
    for row in weights:
        sizes.add(by_id[row.problem_id].source, by_id[row.problem_id].tags, row)
    return sizes.shares()


@dataclass
class Sizes:
    """Counts for `shares`, one problem at a time."""

    count: int = 0
    total: float = 0
    before: Counter[tuple[str, str]] = field(default_factory=Counter)
    after: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, source: str, tags: Sequence[str], row: Weight) -> None:
        self.count, self.total = self.count + 1, self.total + row.weight
        for group in (
            ("source", source),
            ("style", row.style),
            ("level", str(row.level)),
            *(("tag", tag) for tag in tags or ("",)),
        ):
            self.before[group] += 1
            self.after[group] += row.weight  # type: ignore[assignment]  # a Counter adds floats as well

    def shares(self) -> list[Share]:
        return [
            (*group, count, count / self.count, self.after[group] / self.total)
            for group, count in sorted(self.before.items())
        ]


def write_weights(weights: Sequence[Weight], path: Path) -> None:
    write_table(weights_table(weights), path)


def weights_table(weights: Iterable[Weight]) -> pa.Table:
    return pa.Table.from_pylist([asdict(row) for row in weights], schema=SCHEMA)


def read_weights(path: Path) -> list[Weight]:
    """Read what `write_weights` wrote. Raises FileNotFoundError."""
    return [Weight(**row) for row in pq.read_table(path, schema=SCHEMA).to_pylist()]
