"""Production failures: requests whose tests no answer of the gateway passed, by consenting keys.

`ratchet data production` writes the file. Only what a request may say is read from it: statement,
tests and entry point, and the hash of the API key. So no row brings a solution, samples, limits,
code in its tests or another split. A solver's samples have to agree under the tests
(docs/explanation/verification.md), or the problem is removed.
"""

from __future__ import annotations

from problems.columns import ProblemError
from problems.production import SOURCE
from problems.reading.own import own
from problems.reading.source import Row, Source
from problems.schema import Problem
from sandbox.styles import STYLES

READ = ("problem_id", "statement", "style", "tests", "entry_point", "key")
DATA = [name for name, style in STYLES.items() if not style.is_code]


def convert(row: Row, where: str) -> Problem:
    """Raises ProblemError, also for a style whose tests are code."""
    if row.get("style") not in DATA:
        raise ProblemError(
            f"column style is {row.get('style')!r}"[:150], f"use one of {', '.join(DATA)}", where
        )
    return own(SOURCE).convert({name: row[name] for name in READ if name in row}, where)


PRODUCTION = Source(SOURCE, "requests whose tests no answer passed", convert)
