"""Tasks in HumanEval's form that are not HumanEval's: the user's own, or of a set in the same form.

`prompt` is a signature with a docstring, `canonical_solution` its body or a whole program, `test` a
`check(candidate)`.
"""

from __future__ import annotations

from problems.reading.humaneval import docstring, named
from problems.reading.source import Record, Row, text
from problems.shapes.shape import RowShape


def read(row: Row, where: str) -> Record:
    """Read a row. Raises ProblemError if the prompt has no docstring of the function."""
    prompt, name = text(row, "prompt", where), text(row, "entry_point", where)
    return {
        "problem_id": str(row["task_id"]),
        "statement": docstring(prompt, name, where),
        "style": "assert",
        "tests": [{"source": text(row, "test", where)}],
        "entry_point": name,
        "starter_code": prompt,
        "solutions": [prompt + text(row, "canonical_solution", where)],
        "extra": {"task_id": row["task_id"]},
    }


HUMANEVAL_ROWS = RowShape(
    "humaneval_rows",
    "tasks in HumanEval's form",
    ("task_id", "prompt", "canonical_solution", "test", "entry_point"),
    read,
    ("task_id", "prompt", "canonical_solution", "test", "entry_point"),
    fits=lambda row: isinstance(row["test"], str) and not named(row),
)
