"""The problems that supervised training learns from, and the programs that it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from problems.prompt import prompt_messages
from problems.schema import Problem
from problems.stored import stored_problems


def demonstrations(clean: Path, splits: Sequence[str] = ("demonstrations",)) -> list[Problem]:
    """Return the problems of these splits in a dataset's folder that have a solution, in order."""
    return [each for each in stored_problems(clean) if each.split in splits and each.solutions]


def demonstration(problem: Problem) -> str:
    """Return the program that the problem is taught with: its first solution, which verification
    ran. The embedded family has an author who makes mistakes instead (compositional.py).
    """
    if "composition" in problem.extra and problem.split == "demonstrations":
        return str(problem.extra["demonstration"])
    return problem.solutions[0]


def chats(problems: Sequence[Problem], base: str) -> list[tuple[list[dict[str, str]], str]]:
    """Return each problem's prompt and demonstration.

    base: the profile's base model. A model that people talk to writes a program in a fence; one
    made from scratch writes nothing else.
    """
    form = "```python\n{}\n```" if base else "{}"
    return [(prompt_messages(each), form.format(demonstration(each))) for each in problems]
