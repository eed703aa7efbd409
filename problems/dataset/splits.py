"""Validation and held-out problems where the sources name none.

Whoever brings problems usually brings training problems alone. A training needs others to choose
its checkpoint by, and a gate needs others to decide by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from artifacts.hashing import hash_text
from problems.production import is_production
from problems.schema import Problem, Split


@dataclass(frozen=True)
class SplitPart:
    """A part that is taken from the training problems: a share, within limits."""

    split: Split
    percent: int
    least: int
    most: int

    def size(self, count: int) -> int:
        """Return how many of `count` problems are taken, before training keeps its half."""
        return min(max(count * self.percent // 100, self.least), self.most)


VALIDATION = SplitPart("validation", 5, 8, 256)
HELDOUT = SplitPart("heldout", 10, 16, 1024)


def with_parts(problems: Sequence[Problem], parts: Sequence[SplitPart]) -> list[Problem]:
    """Return the problems, in their order, with these parts.

    A part that no problem names is taken from the training problems: those with the smallest hashes
    of their statements, then those with the next. Half of the problems stay for training. Equal
    statements get the same split. Problems of production stay: those who send requests must not
    choose what a checkpoint is chosen by, or decide what is promoted.
    """
    named = {each.split for each in problems if not each.gated}
    missing = [part for part in parts if part.split not in named]
    keys = sorted({_key(problem) for problem in problems if _may_move(problem)})
    moved: dict[str, Split] = {}
    for part in missing:
        size = min(part.size(len(keys)), len(keys) // 2 // len(missing))
        moved |= dict.fromkeys(keys[len(moved) : len(moved) + size], part.split)
    return [
        replace(problem, split=moved.get(_key(problem), problem.split))
        if _may_move(problem)
        else problem
        for problem in problems
    ]


def _may_move(problem: Problem) -> bool:
    return problem.split == "train" and not problem.gated and not is_production(problem)


def _key(problem: Problem) -> str:
    return hash_text(" ".join(problem.statement.split()))
