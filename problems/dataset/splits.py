"""Validation problems where the sources name none.

Whoever brings problems usually brings training problems alone, and a training needs others to
choose its checkpoint by.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from problems.production import is_production
from problems.schema import Problem

VALIDATION_SHARE = 5  # percent of the training problems
MIN_VALIDATION, MAX_VALIDATION = 8, 256


def with_validation(problems: Sequence[Problem]) -> list[Problem]:
    """Return the problems, in their order, with a validation part.

    If none has the split validation, the training problems with the smallest hashes of their
    statements get it: a twentieth of them, at least MIN_VALIDATION but no more than half, at
    most MAX_VALIDATION. Equal statements get the same split. Problems of production stay: those
    who send requests must not choose what a checkpoint is chosen by.
    """
    train = [problem for problem in problems if _may_validate(problem)]
    if any(each.split == "validation" and not each.gated for each in problems):
        return list(problems)
    keys = sorted({_key(problem) for problem in train})
    least = max(len(keys) * VALIDATION_SHARE // 100, MIN_VALIDATION)
    count = min(least, MAX_VALIDATION, len(keys) // 2)
    chosen = set(keys[:count])
    return [
        replace(problem, split="validation")
        if _may_validate(problem) and _key(problem) in chosen
        else problem
        for problem in problems
    ]


def _may_validate(problem: Problem) -> bool:
    return problem.split == "train" and not problem.gated and not is_production(problem)


def _key(problem: Problem) -> str:
    return hashlib.sha256(" ".join(problem.statement.split()).encode()).hexdigest()
