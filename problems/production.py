"""Problems of production: requests to the gateway whose tests no answer passed.

Whoever sends requests writes these problems, so they are never trusted: without a reference, in the
split train only, never a parent of other problems, and at most a small share of a training.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from problems.schema import Problem

SOURCE = "production"


def is_production(problem: Problem) -> bool:
    return problem.source == SOURCE


def capped(problems: Sequence[Problem], share: float) -> list[Problem]:
    """Return the problems, in their order, of which at most this share is production's.

    API keys take turns, so that no key crowds out the others. share: in [0, 1).
    """
    ours = sorted(filter(is_production, problems), key=lambda problem: problem.problem_id)
    others = len(problems) - len(ours)
    most = int(share * others / (1 - share) + 1e-9)
    turns = Counter[str]()
    ranked = list[tuple[int, str]]()
    for problem in ours:
        key = str(problem.extra.get("key"))
        ranked.append((turns[key], problem.problem_id))
        turns[key] += 1
    kept = {problem_id for _, problem_id in sorted(ranked)[:most]}
    return [
        problem for problem in problems if not is_production(problem) or problem.problem_id in kept
    ]
