"""The problems that Ratchet ships, written by hand.

With them, the pipeline has readable problems on a machine without any data. The head of
`simple_problems.json` says how they were made and graded. Each row is in the columns of the schema,
like a user's own file (`own.py`). In some rows, `extra["wrong"]` holds a typical wrong program that
the tests reject.
"""

from __future__ import annotations

import json
from pathlib import Path

from problems.reading.own import own
from problems.reading.source import Source
from problems.schema import Problem, refuse_duplicates

NAME = "simple"
FILE = Path(__file__).with_name("simple_problems.json")


def generate() -> list[Problem]:
    """Return all of them, in the order of the file.

    Raises ProblemError naming the first row that does not fit the schema.
    """
    convert, content = own(NAME).convert, json.loads(FILE.read_text(encoding="utf-8"))
    common = {column: content[column] for column in ("licence", "limits")}
    rows = (common | row for row in content["problems"])
    problems = [convert(row, f"{FILE.name}: row {number}") for number, row in enumerate(rows)]
    refuse_duplicates(problems, FILE.name)
    return problems


SIMPLE = Source(
    NAME, "small tasks in plain English, written for Ratchet", own(NAME).convert, generate=generate
)
