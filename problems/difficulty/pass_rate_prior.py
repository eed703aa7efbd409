"""Prior beliefs before training: each problem's expected pass rate and sampling weight.

In: problems, the ranking of a sample of them, weights. Out: one row per problem. A problem that was
not ranked is expected to have the pass rate of its tags.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

import pyarrow as pa
import pyarrow.parquet as pq

from problems.difficulty.difficulty import PassRateRank
from problems.schema import Problem, write_table

FILE = "expected.parquet"  # next to the training rows
# each tag's rate includes the overall rate with the weight of this many completions, so that a tag
# of one problem has little influence
PULL = 4.0


@dataclass(frozen=True)
class ExpectedPassRate:
    """The prior of one problem.

    `rate` is the pass rate of problems with these tags, strictly between 0 and 1. `passed` of `n`
    completions of the problem itself passed; both are 0 if it was not ranked.
    """

    problem_id: str
    rate: float
    passed: int
    n: int
    weight: float


SCHEMA = pa.schema(
    [
        ("problem_id", pa.string()),
        ("rate", pa.float64()),
        ("passed", pa.int64()),
        ("n", pa.int64()),
        ("weight", pa.float64()),
    ]
)


def expect(
    problems: Iterable[Problem], ranks: Sequence[PassRateRank], weights: Mapping[str, float]
) -> list[ExpectedPassRate]:
    """Return one row per problem, in the given order.

    `rate` is the mean over its tags of the rates that ranked problems with the tag show; without
    tags, the overall rate. weights: how often to draw a problem, 1 if missing.
    """
    problems = list(problems)
    tags, ranked = (
        {problem.problem_id: problem.tags for problem in problems},
        {row.problem_id: row for row in ranks},
    )
    passed: Counter[str] = Counter()
    samples: Counter[str] = Counter()
    for row in ranks:
        for tag in tags.get(row.problem_id, ()):
            passed[tag] += row.passed
            samples[tag] += row.n
    overall = (sum(row.passed for row in ranks) + 1) / (sum(row.n for row in ranks) + 2)
    rates = {tag: (passed[tag] + PULL * overall) / (samples[tag] + PULL) for tag in samples}
    rows = []
    for problem in problems:
        own = ranked.get(problem.problem_id)
        rate = fmean(rates.get(tag, overall) for tag in problem.tags) if problem.tags else overall
        counts = (own.passed, own.n) if own else (0, 0)
        rows.append(
            ExpectedPassRate(
                problem.problem_id, rate, *counts, weights.get(problem.problem_id, 1.0)
            )
        )
    return rows


def write_expected(rows: Sequence[ExpectedPassRate], path: Path) -> None:
    write_table(pa.Table.from_pylist([asdict(row) for row in rows], schema=SCHEMA), path)


def read_expected(path: Path) -> list[ExpectedPassRate]:
    """Read what `write_expected` wrote. Raises FileNotFoundError."""
    return [ExpectedPassRate(**row) for row in pq.read_table(path, schema=SCHEMA).to_pylist()]
