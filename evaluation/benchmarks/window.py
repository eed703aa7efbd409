"""Tasks of a window of dates: `livecodebench@2024-08-01..2025-02-01`."""

from __future__ import annotations

from collections.abc import Sequence

from problems.columns import ProblemError
from problems.schema import Problem


def between(problems: Sequence[Problem], window: str) -> list[Problem]:
    """Return the problems with a contest in the window `FIRST..LAST`, both days included. Raises
    ProblemError for a malformed or empty window.
    """
    first, dots, last = window.partition("..")
    if not dots or len(first) != 10 or len(last) != 10:
        raise ProblemError(
            f"{window!r} is no window of dates",
            "write livecodebench@2024-08-01..2025-02-01",
            "--benchmark",
        )
    inside = [
        problem
        for problem in problems
        if first <= str(problem.extra.get("date") or "")[:10] <= last
    ]
    if not inside:
        raise ProblemError(
            f"no task of {len(problems)} has a date from {first} to {last}",
            "take another window",
            "--benchmark",
        )
    return inside
