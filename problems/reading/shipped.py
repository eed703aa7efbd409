"""The problems of a source that Ratchet ships in a JSON file of its own.

`problems` is a list of rows in the columns of the schema, like a user's own file (`own.py`). A
column at the head of the file holds for every row that has none.
"""

from __future__ import annotations

import json
from pathlib import Path

from problems.columns import COLUMNS
from problems.reading.own import own
from problems.schema import Problem, refuse_duplicates


def shipped(name: str, file: Path) -> list[Problem]:
    """Return the problems of a source's file, in its order.

    Raises ProblemError naming the first row that does not fit the schema.
    """
    convert, content = own(name).convert, json.loads(file.read_text(encoding="utf-8"))
    head = {column: content[column] for column in COLUMNS if column in content}
    rows = (head | row for row in content["problems"])
    problems = [convert(row, f"{file.name}: row {number}") for number, row in enumerate(rows)]
    refuse_duplicates(problems, file.name)
    return problems
