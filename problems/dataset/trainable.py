"""Which training problems a policy is trained on."""

from __future__ import annotations

from collections.abc import Sequence

from problems.schema import Problem
from problems.sources import everyday, simple

IN_ENGLISH = (simple.NAME, everyday.NAME)  # the shipped sources in plain English


def trainable(problems: Sequence[Problem], base: str) -> list[Problem]:
    """Return the problems to train on, in their order. base: the profile's base model."""
    strange = untrained(problems, base)
    return [
        problem
        for problem in problems
        if problem.split == "train" and problem.problem_id not in strange
    ]


def untrained(problems: Sequence[Problem], base: str) -> set[str]:
    """Return ids of training problems that are not trained on; none if `base` names a model.

    A tiny model made from scratch (`base` is empty) has never seen the English of the shipped
    sources `simple` and `everyday`, and would only lose time on them. So these problems are left
    out, with all that were derived from them, directly or indirectly. A user's own problems stay.
    """
    if base:
        return set()
    train = [problem for problem in problems if problem.split == "train"]
    excluded = {problem.problem_id for problem in train if problem.source in IN_ENGLISH}
    while (
        more := {
            problem.problem_id
            for problem in train
            if any(_is_in_english(parent, excluded) for parent in problem.parents)
        }
        - excluded
    ):
        excluded |= more
    return excluded


def explained(count: int) -> str:
    """Say how many problems are not trained on, and why."""
    why = (
        ": shipped problems in plain English, in words that the tiny model was never shown; with a "
        "model that `base` names they are trained on if they are added"
    )
    return f"{count}{why if count else ''}"


def _is_in_english(problem_id: str, excluded: set[str]) -> bool:
    # The prefix also matches when cleaning has removed the parent.
    return problem_id in excluded or problem_id.split("/")[0] in IN_ENGLISH
