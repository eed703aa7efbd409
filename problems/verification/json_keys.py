"""Integer keys that a JSON file has made text: a hint in the reason for which a problem is removed.

JSON has only text keys, so `{1: 2}` is read from a file as `{"1": 2}`, and a right solution fails.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from problems.encoding import encode
from problems.schema import Problem

MAX_ITEMS = 2  # of a dict, in the example
INTEGER = re.compile(r"-?\d{1,15}")


def hint(problem: Problem) -> str:
    """Return how to write integer keys if a dict in the tests has only numbers as keys, else ""."""
    values = (
        value
        for test in problem.tests
        for value in (test.get("args"), *(test.get("kwargs") or {}).values(), test.get("expected"))
    )
    found = next((each for value in values for each in _dicts(value) if _has_text_keys(each)), None)
    if found is None:
        return ""
    items = [[int(key), encode(item)] for key, item in islice(found.items(), MAX_ITEMS)]
    return (
        f"; keys of dicts in its tests are text, such as {next(iter(found))!r}, as in all JSON: if "
        f"they are integers, write {json.dumps({'$dict': items})[:80]}"
    )


def _dicts(value: Any) -> Iterator[dict[Any, Any]]:
    if isinstance(value, dict):
        yield value
    if isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _dicts(item)


def _has_text_keys(value: dict[Any, Any]) -> bool:
    return bool(value) and all(isinstance(key, str) and INTEGER.fullmatch(key) for key in value)
