"""Problems as a user's own file has them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from problems.schema import Problem


def write_rows(problems: Iterable[Problem], path: Path) -> None:
    """Write a row for each problem; every fourth is held out."""
    rows = [
        {
            "problem_id": f"p{number}",
            "statement": problem.statement,
            "style": problem.style,
            "entry_point": problem.entry_point,
            "tests": list(problem.tests),
            "solutions": list(problem.solutions),
            "split": "heldout" if number % 4 == 0 else "train",
        }
        for number, problem in enumerate(problems)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
