"""Small tasks of everyday programming that Ratchet ships, for a small pretrained model.

They begin with one expression, in plain English, over numbers, strings, lists and dictionaries. The
head of `everyday_problems.json` names the grades. No program occurs in two of the splits train,
validation and heldout, even with other constants.
"""

from __future__ import annotations

from pathlib import Path

from problems.reading.own import own
from problems.reading.shipped import shipped
from problems.reading.source import Source
from problems.schema import Problem

NAME = "everyday"
FILE = Path(__file__).with_name("everyday_problems.json")


def generate() -> list[Problem]:
    """Return all of them, in the order of the file. Raises as `shipped` does."""
    return shipped(NAME, FILE)


EVERYDAY = Source(
    NAME,
    "one to four lines over numbers, strings and lists, written for Ratchet",
    own(NAME).convert,
    generate=generate,
)
