"""Write JSON lists of any length, row by row, with the bytes of `json.dumps(rows, indent=1)`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any


def json_list(rows: Iterable[Any], depth: int = 1) -> Iterator[str]:
    """Yield the text of a list. depth: of its rows, in spaces."""
    indent = "\n" + " " * depth
    empty = True
    for row in rows:
        # Texts in JSON have no line breaks of their own.
        yield ("[" if empty else ",") + indent + json.dumps(row, indent=1).replace("\n", indent)
        empty = False
    yield "[]" if empty else "\n" + " " * (depth - 1) + "]"
