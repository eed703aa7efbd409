"""Write problems as verl reads them: a parquet file with prompts.

`ground_truth` holds all that a reward needs to judge a completion.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from problems.encoding import dumps
from problems.prompt import prompt_messages
from problems.schema import Problem, from_row, to_row, write_table

if TYPE_CHECKING:
    import pyarrow as pa

COST = "reference_cost"  # key in `extra`: the cost measured by rewards/components/efficiency.py
# columns that judging does not need
UNSEEN: dict[str, Any] = {
    "solutions": [],
    "extra": "{}",
    "statement": "(see the prompt)",
}


@cache
def verl_schema() -> pa.Schema:
    """Return the columns of verl's parquet file."""
    import pyarrow as pa

    return pa.schema(
        [
            ("data_source", pa.string()),
            ("prompt", pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))),
            ("ability", pa.string()),
            ("reward_model", pa.struct([("style", pa.string()), ("ground_truth", pa.string())])),
            (
                "extra_info",
                pa.struct(
                    [
                        ("index", pa.int64()),
                        ("problem_id", pa.string()),
                        ("split", pa.string()),
                        ("tags", pa.list_(pa.string())),
                    ]
                ),
            ),
        ]
    )


def write_verl(
    problems: Sequence[Problem],
    path: Path,
    prompts: Sequence[list[dict[str, str]]] | None = None,
    data_source: str = "",
) -> None:
    """Write `verl_table`."""
    write_table(verl_table(problems, prompts, data_source), path)


def verl_table(
    problems: Sequence[Problem],
    prompts: Sequence[list[dict[str, str]]] | None = None,
    data_source: str = "",
) -> pa.Table:
    """Return one row per problem, in the given order; `extra_info.index` is the position.

    prompts: used instead of the problems' own prompts. data_source: the group that verl averages
    validation scores over; empty: each problem's source.
    """
    import pyarrow as pa

    chats = prompts or [prompt_messages(problem) for problem in problems]
    rows = [
        _row(problem, index, chat, data_source or problem.source)
        for index, (problem, chat) in enumerate(zip(problems, chats, strict=True))
    ]
    return pa.Table.from_pylist(rows, schema=verl_schema())


def _row(
    problem: Problem, index: int, prompt: list[dict[str, str]], data_source: str
) -> dict[str, Any]:
    return {
        "data_source": data_source,
        "prompt": prompt,
        "ability": "code",
        "reward_model": {"style": "rule", "ground_truth": ground_truth(problem)},
        "extra_info": {
            "index": index,
            "problem_id": problem.problem_id,
            "split": problem.split,
            "tags": list(problem.tags),
        },
    }


def ground_truth(problem: Problem) -> str:
    """Return the JSON that judging a completion needs.

    It is the problem without statement, solutions and extra, except for the references' cost.
    """
    extra = {COST: problem.extra[COST]} if COST in problem.extra else {}
    return json.dumps(to_row(problem) | UNSEEN | {"extra": dumps(extra)}, sort_keys=True)


def problem_from_ground_truth(text: str) -> Problem:
    """Inverse of `ground_truth`.

    Raises ProblemError naming the column, or ValueError if the text is not JSON.
    """
    return from_row(json.loads(text), "ground_truth")
