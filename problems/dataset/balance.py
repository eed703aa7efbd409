"""Compute how often to draw each training problem, so that common kinds do not crowd out rare ones.

This gives weights and never deletes a problem. In: problems, and their difficulties. Out: a weight
per problem, 1 on average, and a table of each group's share before and after.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from statistics import fmean

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
    levels = [level(hard.get(problem.problem_id, static[problem.problem_id])) for problem in train]
    styles, tags = (
        [(problem.style,) for problem in train],
        [problem.tags or ("",) for problem in train],
    )
    factors = [_factors(groups) for groups in (styles, [(str(number),) for number in levels], tags)]
    raw = [
        min(CAP, max(1 / CAP, prod(axes) ** (1 / len(axes)))) for axes in zip(*factors, strict=True)
    ]
    mean = fmean(raw) if raw else 1.0
    return [
        Weight(
            problem.problem_id,
            problem.style,
            number,
            problem.problem_id in hard,
            round(weight / mean, 6),
        )
        for problem, number, weight in zip(train, levels, raw, strict=True)
    ]


def level(difficulty: float) -> int:
    """Return the level from 1 (easy) to `LEVELS` (hard) of a difficulty in [0, 1]."""
    return min(int(difficulty * LEVELS), LEVELS - 1) + 1


def _factors(groups: Sequence[Sequence[str]]) -> list[float]:
    """Return each problem's factor on one axis: how rare its groups are."""
    counts = Counter(group for own in groups for group in own)
    fair = counts.total() / len(counts) if counts else 1.0
    return [fmean((fair / counts[group]) ** TEMPERATURE for group in own) for own in groups]


def shares(problems: Iterable[Problem], weights: Sequence[Weight]) -> list[Share]:
    """Return the size of each source, style, level and tag, and its share of the draws.

    The share is given for equal weights and for these weights.
    """
    by_id = {problem.problem_id: problem for problem in problems}
    before: Counter[tuple[str, str]] = Counter()
    after: Counter[tuple[str, str]] = Counter()
    for row in weights:
        problem = by_id[row.problem_id]
        own = [
            ("source", problem.source),
            ("style", row.style),
            ("level", str(row.level)),
            *(("tag", tag) for tag in problem.tags or ("",)),
        ]
        for group in own:
            before[group] += 1
            after[group] += row.weight  # type: ignore[assignment]  # a Counter adds floats as well
    total = sum(row.weight for row in weights)
    return [
        (*group, count, count / len(weights), after[group] / total)
        for group, count in sorted(before.items())
    ]


def write_weights(weights: Sequence[Weight], path: Path) -> None:
    write_table(pa.Table.from_pylist([asdict(row) for row in weights], schema=SCHEMA), path)


def read_weights(path: Path) -> list[Weight]:
    """Read what `write_weights` wrote. Raises FileNotFoundError."""
    return [Weight(**row) for row in pq.read_table(path, schema=SCHEMA).to_pylist()]
