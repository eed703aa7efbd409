"""Which programs supervised training is shown."""

from __future__ import annotations

from dataclasses import replace

from problems.demonstrations import chats, demonstration
from problems.embedded.compositional import FamilyConfig, generate
from problems.schema import Problem

FAMILY = generate(FamilyConfig(demonstrations=40, train=1, validation=1))


def own(problem: Problem) -> Problem:
    return replace(problem, source="mine", extra={"demonstration": "def solve(x): return 0"})


def test_a_users_problem_is_taught_by_its_verified_solution() -> None:
    assert demonstration(own(FAMILY[0])) == FAMILY[0].solutions[0]


def test_only_the_embedded_author_makes_mistakes() -> None:
    taught = [demonstration(each) for each in FAMILY if each.split == "demonstrations"]
    right = [each.solutions[0] for each in FAMILY if each.split == "demonstrations"]
    assert taught != right


def test_a_named_base_is_shown_programs_in_a_fence() -> None:
    problem = own(FAMILY[0])
    [(_, fenced)] = chats([problem], base="Qwen/Qwen2.5-Coder-0.5B")
    [(_, plain)] = chats([problem], base="")
    assert fenced == f"```python\n{plain}\n```"
