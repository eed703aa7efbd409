"""Which problems of the training part a policy is trained on."""

from __future__ import annotations

from collections.abc import Sequence

from problems.schema import Problem
from problems.sources.simple import NAME


def trainable(problems: Sequence[Problem], base: str) -> list[Problem]:
    """The problems of the training part that are trained on, in their order. base: the profile's."""
    strange = untrained(problems, base)
    return [
        problem
        for problem in problems
        if problem.split == "train" and problem.problem_id not in strange
    ]


def untrained(problems: Sequence[Problem], base: str) -> set[str]:
    """Ids of the training part that are not trained on; none where `base` names a model to start from.

    A tiny model made from scratch (`base` is empty) was never shown the English in which the shipped source `simple` is written, and would only lose
    time on it. So these are left out, with all that was made from them, directly or through others; a user's own problems stay.
    """
    if base:
        return set()
    train = [problem for problem in problems if problem.split == "train"]
    found = {problem.problem_id for problem in train if problem.source == NAME}
    while (
        more := {
            problem.problem_id
            for problem in train
            if any(_is_simple(parent, found) for parent in problem.parents)
        }
        - found
    ):
        found |= more
    return found


def explained(count: int) -> str:
    """So many untrained, and why."""
    why = (
        ": simple problems, in words that the tiny model was never shown; with a model that "
        "`base` names they are trained on too"
    )
    return f"{count}{why if count else ''}"


def _is_simple(problem_id: str, found: set[str]) -> bool:
    return problem_id in found or problem_id.startswith(
        f"{NAME}/"
    )  # also where cleaning took the parent out
