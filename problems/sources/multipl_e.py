"""MultiPL-E's translations of HumanEval and MBPP to JavaScript and C++ (Cassano et al. 2023,
arXiv:2208.08227; MIT). Gated: for evaluation only.

The starter code is upstream's prompt; the test is upstream's, without the brace with which those
for C++ begin. The dataset has no solutions.
"""

from __future__ import annotations

from functools import partial

from problems.columns import ProblemError
from problems.reading.source import Row, Source, has
from problems.schema import Problem, from_record
from problems.shapes.multipl_e import read
from sandbox.languages import language_of
from sandbox.limits import Limits

KEYS = ("name", "language", "prompt", "tests", "stop_tokens")
LIMITS = Limits.of_work(15.0, memory_mb=1024)  # upstream: 15 s of wall time


def convert(row: Row, where: str, name: str) -> Problem:
    """Convert a row of the dataset's configuration `humaneval-js` and the like."""
    if not _fits(row, name):
        given = f"{row.get('name')!r} in {row.get('language')!r}"
        raise ProblemError(f"the row is {given}", f"give the rows of {name}", where)
    record = read(row, where)
    record["extra"] |= {"stop_tokens": [str(each) for each in row["stop_tokens"]]}
    key = record["problem_id"]
    record |= {"problem_id": f"{name}/{key}", "source": name, "limits": vars(LIMITS)}
    record |= {"split": "heldout", "licence": "MIT", "gated": True, "tags": ["multipl-e"]}
    return from_record(record, where)


def _fits(row: Row, name: str) -> bool:
    benchmark, _, language = name.partition("-")
    return (
        has(row, *KEYS)
        and str(row["name"]).lower().startswith(f"{benchmark}_")
        and language_of(str(row["language"])) == language_of(language)
    )


def _source(name: str) -> Source:
    return Source(
        name,
        f"MultiPL-E, {name}, gated",
        partial(convert, name=name),
        "nuprl/MultiPL-E",
        name,
        (f"{name}.jsonl", f"{name}.jsonl.gz", f"{name}.parquet"),
        fits=partial(_fits, name=name),
    )


HUMANEVAL_JS = _source("humaneval-js")
HUMANEVAL_CPP = _source("humaneval-cpp")
MBPP_JS = _source("mbpp-js")
MBPP_CPP = _source("mbpp-cpp")
