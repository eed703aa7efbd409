"""Which problems of the training part a policy is trained on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from problems.schema import Problem
from problems.sources.simple import NAME


def trainable(problems: Sequence[Problem], base: str) -> list[Problem]:
    """The problems of the training part, in their order; where `base` names a model to start from, all of them.

    A tiny model made from scratch (`base` is empty) was never shown the English in which the shipped source `simple` is written, and would only lose
    time on it. So these are left out, with all that was made from them (`extra["parents"]`); a user's own problems stay.
    """
    train = [problem for problem in problems if problem.split == "train"]
    strange = set() if base else _shipped(train)
    return [problem for problem in train if problem.problem_id not in strange]


def left_out(problems: Sequence[Problem], base: str) -> int:
    """How many problems of the training part are not `trainable`."""
    return sum(problem.split == "train" for problem in problems) - len(trainable(problems, base))


def explained(count: int) -> str:
    """So many left out, and why."""
    why = ": simple problems, in words that the tiny model was never shown; with a model that `base` names they are trained on too"
    return f"{count}{why if count else ''}"


def _shipped(problems: Sequence[Problem]) -> set[str]:
    """Ids of the shipped simple problems and of their descendants."""
    found = {problem.problem_id for problem in problems if problem.source == NAME}
    while more := {problem.problem_id for problem in problems if any(_is_simple(parent, found) for parent in _parents(problem))} - found:
        found |= more
    return found


def _parents(problem: Problem) -> list[Any]:
    named = problem.extra.get("parents")  # of a user's own file it may be anything
    return named if isinstance(named, list) else []


def _is_simple(problem_id: Any, found: set[str]) -> bool:
    return isinstance(problem_id, str) and (problem_id in found or problem_id.startswith(f"{NAME}/"))  # also where cleaning took the parent out
