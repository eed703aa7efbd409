"""The largest row that a source may have."""

from __future__ import annotations

import json
from typing import Any

from problems.columns import ProblemError

# HumanEval+ has rows of 1 MiB. A much larger row is a mistake and would fail in every later stage.
MAX_ROW_BYTES = 64 * 2**20


def size_of(row: Any) -> int:
    """Return the characters of a row as JSON."""
    return len(json.dumps(row, default=str))


def too_large(size: int, where: str) -> ProblemError:
    """Return the error for a row of so many bytes."""
    return ProblemError(
        f"a row of {size >> 20} MiB",
        f"at most {MAX_ROW_BYTES >> 20} MiB: shorten its statement or tests",
        where,
    )
