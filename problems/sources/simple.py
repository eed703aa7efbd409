"""The problems that Ratchet ships, written by hand.

With them, the pipeline has readable problems on a machine without any data. The head of
`simple_problems.json` says how they were made and graded. In some rows, `extra["wrong"]` holds a
typical wrong program that the tests reject.
"""

from __future__ import annotations

from pathlib import Path

from problems.reading.own import own
from problems.reading.shipped import shipped
from problems.reading.source import Source
from problems.schema import Problem

NAME = "simple"
FILE = Path(__file__).with_name("simple_problems.json")


def generate() -> list[Problem]:
    """Return all of them, in the order of the file. Raises as `shipped` does."""
    return shipped(NAME, FILE)


SIMPLE = Source(
    NAME, "small tasks in plain English, written for Ratchet", own(NAME).convert, generate=generate
)
