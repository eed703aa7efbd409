"""Which programs supervised training is shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from problems.demonstrations import chats, demonstration, demonstrations
from problems.embedded.compositional import generate
from problems.embedded.settings import FamilyConfig
from problems.schema import Problem, write_parquet
from problems.stored import FILE

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


def test_solutions_of_training_problems_are_shown_only_if_asked(tmp_path: Path) -> None:
    write_parquet(FAMILY, tmp_path / FILE)
    splits = [each.split for each in demonstrations(tmp_path)]
    assert splits == ["demonstrations"] * 40
    both = demonstrations(tmp_path, ("demonstrations", "train"))
    [(_, shown)] = chats([each for each in both if each.split == "train"], base="")
    [train] = [each for each in FAMILY if each.split == "train"]
    assert shown == train.solutions[0]
