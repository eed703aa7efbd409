"""Quality rules of statements and solutions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from problems.cleaning.curation import curate
from problems.cleaning.quality import fault
from problems.prompt import TURNS
from problems.schema import Problem
from problems.sources.registry import load
from tests.problems.test_curation import SOLUTION, toy


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (toy("q", "https://example.com/17 ![](x.png) 42"), "no statement"),
        (toy("q", "Sort."), "statement too short"),
        (toy("q", "word " * 5000), "statement too long"),
        (toy("q", "Напишите функцию, которая складывает два числа."), "not in English"),
        (
            toy(
                "q",
                "Escribe una función "
                + "que devuelve la suma de los números pares de una lista " * 3,
            ),
            "not in English",
        ),
        (toy("q", solution=f"x = '{'a' * 20_000}'"), "solution too long"),
        (
            toy("q", f"Write f as in this program:\n{SOLUTION}", solution=SOLUTION),
            "the answer is given away",
        ),
        (toy("q", starter_code=SOLUTION, solution=SOLUTION), "the answer is given away"),
        (toy("q", visible_tests=1), "the answer is given away"),
        (
            toy(
                "q",
                solution=SOLUTION,
                extra={TURNS: [{"role": "assistant", "content": f"So:\n{SOLUTION}"}]},
            ),
            "the answer is given away",
        ),
    ],
)
def test_a_poor_problem_is_removed_with_its_reason(problem: Problem, reason: str) -> None:
    assert curate([problem], []).removed[0].reason == reason


def test_an_earlier_answer_that_is_to_be_changed_gives_nothing_away() -> None:
    earlier = SOLUTION.replace("return ", "return 1 + ")
    turns = {TURNS: [{"role": "assistant", "content": earlier}]}
    assert curate([toy("q", solution=SOLUTION, extra=turns)], []).removed == []


def test_headings_and_parameters_in_english_are_english() -> None:
    text = (
        "Strand sort implementation\nsource: wikipedia, strand sort\n:param arr: Unordered input "
        "list\n:param reverse: Descent ordering flag\n:param solution: Ordered items container"
    )
    assert curate([toy("q", text)], []).removed == []


@pytest.mark.slow
def test_statements_of_real_benchmarks_pass_the_quality_rules(data: Callable[[str], Path]) -> None:
    problems = [
        problem
        for name in ("mbpp", "humaneval", "leetcode")
        for problem in load(name, data(name)).problems
    ]
    assert [
        problem.problem_id
        for problem in problems
        if fault(problem, min_words=3, max_characters=20_000, english=True)
    ] == []
