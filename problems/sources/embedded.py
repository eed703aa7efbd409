"""The embedded family with its default settings, generated here."""

from __future__ import annotations

from problems.embedded.compositional import generate
from problems.embedded.settings import FamilyConfig
from problems.reading.own import own
from problems.reading.source import Source

EMBEDDED = Source(
    "embedded",
    "compositions of small operations, made here",
    own("embedded").convert,
    generate=lambda: generate(FamilyConfig()),
)
