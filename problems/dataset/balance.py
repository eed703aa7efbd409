"""How often each problem of the training part should be drawn, so that what is common does not drown what is rare. Weights, never deletion.

In: problems, and how hard each is. Out: a weight a problem, 1 on average, and a table of each group's share before and after.
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

TEMPERATURE = 0.5  # 0 leaves every weight at 1, 1 gives every group the same share; between them as with languages (Conneau et al. 2020)
CAP = 4.0  # a weight is at most so much, and at least one so-manieth, before the mean is made 1
LEVELS = 5  # buckets of difficulty, equally wide: 1 easy to 5 hard


@dataclass(frozen=True)
class Weight:
    """How often to draw a problem, 1 being the mean. `level` of difficulty rests on answers where `measured`, else on the static score."""

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
    """Weights of the training part, by id: the geometric mean over style, level and tags of (fair share / own share) ** `TEMPERATURE`, capped.

    The mean and not the product, for the axes tell much the same (a source often has one style and one tag), and what is rare would become common.
    static: a difficulty in [0, 1] for every problem. pass_rates: where known, they decide the level instead. A problem of several tags takes
    the mean over them; one without has the tag "".
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
    """1 (easy) to `LEVELS` (hard) of a difficulty in [0, 1]."""
    return min(int(difficulty * LEVELS), LEVELS - 1) + 1


def _factors(groups: Sequence[Sequence[str]]) -> list[float]:
    """What one axis says of each problem: how rare its groups are."""
    counts = Counter(group for own in groups for group in own)
    fair = counts.total() / len(counts) if counts else 1.0
    return [fmean((fair / counts[group]) ** TEMPERATURE for group in own) for own in groups]


def shares(problems: Iterable[Problem], weights: Sequence[Weight]) -> list[Share]:
    """Of each source, style, level and tag: how many problems, and its share of the draws with equal weights and with these."""
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
    """Raises FileNotFoundError."""
    return [Weight(**row) for row in pq.read_table(path, schema=SCHEMA).to_pylist()]
