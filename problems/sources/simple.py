"""The problems that Ratchet ships: written for it by hand, so that the chain has something that people read on a machine without any data.

`simple_problems.json` says at its top how they were made and graded; each row is in the columns of the schema, as a user's own file would be
(`own.py`). Of some, `extra["wrong"]` holds a program that people are apt to write, and that the tests refuse.
"""

from __future__ import annotations

import json
from pathlib import Path

from problems.schema import Problem, refuse_duplicates
from problems.sources.own import own
from problems.sources.source import Source

NAME = "simple"
FILE = Path(__file__).with_name("simple_problems.json")


def generate() -> list[Problem]:
    """All of them, in the order of the file. Raises ProblemError naming the row of the first that does not fit the schema."""
    convert, content = own(NAME).convert, json.loads(FILE.read_text(encoding="utf-8"))
    common = {column: content[column] for column in ("licence", "limits")}
    rows = (common | row for row in content["problems"])
    problems = [convert(row, f"{FILE.name}: row {number}") for number, row in enumerate(rows)]
    refuse_duplicates(problems, FILE.name)
    return problems


SIMPLE = Source(
    NAME, "small tasks in plain English, written for Ratchet", own(NAME).convert, generate=generate
)
