"""APPS, 10,000 tasks from competition sites (Hendrycks et al. 2021, arXiv:2105.09938; MIT).

Its test split is gated. Read in the schema of the hub's `codeparrot/apps` (its dataset card), and
tested on a hand-made file of that schema, not on the dataset itself: `problem_id` (numbered
separately in each split, so our id names the split), `question`, `solutions` and `input_output` as
JSON text, `difficulty`, `url`, `starter_code`. With `fn_name` a test calls a function, otherwise it
runs a program on an input.
"""

from __future__ import annotations

from problems.columns import ProblemError
from problems.reading.input_output import (
    IMPORTS,
    parsed,
    python_3,
    tests_of,
)
from problems.reading.source import SPLIT, Row, Source, has, number, text
from problems.schema import Problem, Split
from sandbox.protocol import Limits
from sandbox.styles import STYLES

LIMITS = Limits.of_work(10.0, memory_mb=512)


def convert(row: Row, where: str) -> Problem:
    """Convert a row of `train.jsonl` or `test.jsonl`."""
    return problem_of(row, where, "apps", f"{number(row, 'problem_id', where):04}", "MIT", ())


def problem_of(
    row: Row, where: str, source: str, key: str, licence: str, tags: tuple[str, ...]
) -> Problem:
    """Convert what APPS and TACO have in common. key: identifies the task within its split."""
    split, starter = split_of(row, where), str(row.get("starter_code") or "")
    written = parsed(row, "solutions", where, [])
    solutions = (
        written
        if isinstance(written, list) and all(isinstance(item, str) for item in written)
        else []
    )
    style, name, tests, checker = tests_of(
        parsed(row, "input_output", where, {}), where, starter, *solutions
    )
    kind = STYLES[style]
    prompt = IMPORTS if kind.has_entry_point else ""
    difficulty = str(row.get("difficulty") or "unknown").lower()
    return Problem(
        problem_id=f"{source}/{split}-{key}",
        source=source,
        statement=text(row, "question", where).strip(),
        style=style,
        tests=tests,
        entry_point=name,
        starter_code=prompt,
        solutions=python_3(solutions, prompt),
        limits=LIMITS,
        tags=tuple(dict.fromkeys((source, difficulty, *tags))),
        split=PARTS[split],
        licence=licence,
        gated=split == "test",
        compare="tokens" if "tokens" in kind.compares else "exact",
        checker=checker,
        extra={
            "difficulty": difficulty,
            "url": row.get("url"),
            "upstream_solutions": len(solutions),
        }
        | ({"signature": starter} if starter else {}),
    )


PARTS: dict[str, Split] = {"train": "train", "test": "heldout"}


def split_of(row: Row, where: str) -> str:
    """Return the split, which decides whether the task may be trained on.

    Raises ProblemError if it is unknown.
    """
    split = row.get(SPLIT) or row.get("split")
    if split not in PARTS:
        raise ProblemError(
            f"the split is {split!r}",
            "name the file as upstream does, train or test with something behind",
            where,
        )
    return str(split)


APPS = Source(
    "apps",
    "APPS, 5000 train tasks; 5000 test tasks, gated",
    convert,
    "codeparrot/apps",
    files=("train.jsonl", "test.jsonl"),
    all_files=True,
    hub_files=(("train", "train.jsonl"), ("test", "test.jsonl")),
    by_split=True,
    fits=lambda row: has(row, "problem_id", "question", "input_output"),
)
