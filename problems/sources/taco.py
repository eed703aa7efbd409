"""TACO, 26,443 tasks from competition sites (Li et al. 2023, arXiv:2312.14852; Apache-2.0).

Its test split is gated. Read in the schema of the hub's `BAAI/TACO` (its dataset card), and tested
on a hand-made file of that schema, not on the dataset itself: the keys of APPS without
`problem_id`, and `tags`, `skill_types`, `time_limit`, `name`, `source`. A task has no number, so
its id is a hash of its question.
"""

from __future__ import annotations

import ast
import re

from artifacts.hashing import hash_text
from problems.reading.source import Row, Source, has, text
from problems.schema import Problem
from problems.sources.apps import problem_of


def convert(row: Row, where: str) -> Problem:
    """Convert a row of `train-*` or `test-*`."""
    key = hash_text(text(row, "question", where))[:12]
    return problem_of(row, where, "taco", key, "Apache-2.0", tags_of(row))


def tags_of(row: Row) -> tuple[str, ...]:
    """Return upstream's topics and skills, which are lists written as Python text."""
    tags = list[str]()
    for key in ("tags", "skill_types"):
        try:
            value = ast.literal_eval(str(row.get(key) or "[]"))
        except (SyntaxError, ValueError, RecursionError):
            continue
        tags += (
            [
                re.sub(r"\W+", "-", item.lower()).strip("-")
                for item in value
                if isinstance(item, str)
            ]
            if isinstance(value, list)
            else []
        )
    return tuple(tags)


TACO = Source(
    "taco",
    "TACO, 25,443 train tasks; 1000 test tasks, gated",
    convert,
    "BAAI/TACO",
    hub_files=(("train", "ALL/train/*.arrow"), ("test", "ALL/test/*.arrow")),
    by_split=True,
    fits=lambda row: has(row, "question", "input_output") and "problem_id" not in row,
)
