"""The difficulty of a problem for a model: the pass rate of its completions, with an interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from problems.columns import ProblemError
from problems.schema import write_table
from problems.wilson import wilson_bounds


@dataclass(frozen=True)
class PassRateRank:
    """The pass rate of one problem; rank 0 is the easiest.

    `passed` of `n` scored completions passed; `low` to `high` is the 95 % Wilson interval of the
    pass rate. `problem_hash` identifies the statement and tests, `checkpoint_hash` the model.
    """

    problem_id: str
    n: int
    passed: int
    pass_rate: float
    low: float
    high: float
    rank: int
    problem_hash: str = ""
    checkpoint_hash: str = ""


SCHEMA = pa.schema(
    [
        ("problem_id", pa.string()),
        ("n", pa.int64()),
        ("passed", pa.int64()),
        ("pass_rate", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("rank", pa.int64()),
        ("problem_hash", pa.string()),
        ("checkpoint_hash", pa.string()),
    ]
)


def rank(
    outcomes: Mapping[str, Sequence[bool]],
    problem_hashes: Mapping[str, str] | None = None,
    checkpoint_hash: str = "",
) -> list[PassRateRank]:
    """Rank problems, easiest first, equal rates by id.

    outcomes: for each problem, whether each scored completion passed; the caller leaves out
    completions without a score. problem_hashes: the content hash of each problem. checkpoint_hash:
    of the model. Raises ValueError naming a problem without a scored completion, which has no rate.
    """
    if empty := next((problem_id for problem_id, passed in outcomes.items() if not passed), None):
        raise ValueError(f"problem {empty} has no scored completion: leave it out or sample again")
    rates = {problem_id: sum(passed) / len(passed) for problem_id, passed in outcomes.items()}
    ranks, hashes = [], problem_hashes or {}
    for place, problem_id in enumerate(sorted(rates, key=lambda key: (-rates[key], key))):
        n, passed = len(outcomes[problem_id]), sum(outcomes[problem_id])
        ranks.append(
            PassRateRank(
                problem_id,
                n,
                passed,
                rates[problem_id],
                *wilson_bounds(passed, n),
                rank=place,
                problem_hash=hashes.get(problem_id, ""),
                checkpoint_hash=checkpoint_hash,
            )
        )
    return ranks


def write_ranks(ranks: Sequence[PassRateRank], path: Path) -> None:
    write_table(pa.Table.from_pylist([asdict(row) for row in ranks], schema=SCHEMA), path)


def read_ranks(path: Path) -> list[PassRateRank]:
    """Read a ranking. Raises FileNotFoundError, or ProblemError if the file is not a ranking."""
    try:
        rows = pq.read_table(path, schema=SCHEMA).to_pylist()
        return [
            PassRateRank(**{name: value for name, value in row.items() if value is not None})
            for row in rows
        ]
    except (pa.ArrowException, TypeError) as error:
        raise ProblemError(
            f"no difficulty ranking ({str(error).splitlines()[0]})",
            "materialize difficulty_rankings again",
            str(path),
        ) from error
