"""What is believed of each problem before training: how often the start policy passes it, and how often it should be drawn.

In: problems, the ranking of a sample of them, weights. Out: a row a problem; one that was not ranked is expected to be as its tags are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

import pyarrow as pa
import pyarrow.parquet as pq

from problems.difficulty.difficulty import Rank
from problems.schema import Problem, write_table

FILE = "expected.parquet"  # beside the training rows
PULL = 4.0  # answers' worth of the overall rate in each tag's rate, so that a tag of one problem does not say much


@dataclass(frozen=True)
class Expected:
    """`rate` of problems with these tags, strictly between 0 and 1; `passed` of `n` answers to the problem itself, 0 of 0 where it was not ranked."""

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
    problems: Iterable[Problem], ranks: Sequence[Rank], weights: Mapping[str, float]
) -> list[Expected]:
    """A row a problem, in the order given. `rate` is the mean over its tags of what ranked problems with that tag show, the overall rate where it
    has none. weights: how often to draw a problem, 1 where it has none.
    """
    problems = list(problems)
    tags, ranked = (
        {problem.problem_id: problem.tags for problem in problems},
        {row.problem_id: row for row in ranks},
    )
    passed: Counter[str] = Counter()
    drawn: Counter[str] = Counter()
    for row in ranks:
        for tag in tags.get(row.problem_id, ()):
            passed[tag] += row.passed
            drawn[tag] += row.n
    overall = (sum(row.passed for row in ranks) + 1) / (sum(row.n for row in ranks) + 2)
    rates = {tag: (passed[tag] + PULL * overall) / (drawn[tag] + PULL) for tag in drawn}
    found = []
    for problem in problems:
        own = ranked.get(problem.problem_id)
        rate = fmean(rates.get(tag, overall) for tag in problem.tags) if problem.tags else overall
        answers = (own.passed, own.n) if own else (0, 0)
        found.append(
            Expected(problem.problem_id, rate, *answers, weights.get(problem.problem_id, 1.0))
        )
    return found


def write_expected(rows: Sequence[Expected], path: Path) -> None:
    write_table(pa.Table.from_pylist([asdict(row) for row in rows], schema=SCHEMA), path)


def read_expected(path: Path) -> list[Expected]:
    """Raises FileNotFoundError."""
    return [Expected(**row) for row in pq.read_table(path, schema=SCHEMA).to_pylist()]
