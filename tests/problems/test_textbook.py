"""Functions of every course are told from the others, and a program alone is no copy of them."""

from __future__ import annotations

import pytest

from problems.cleaning.leaks import find_leaks
from problems.cleaning.textbook import common, textbook
from problems.schema import Problem
from sandbox.sandbox import Sandbox
from tests.problems.test_curation import toy

PRIME = """
def is_prime(n):
    if n < 2:
        return False
    for k in range(2, n - 1):
        if n % k == 0:
            return False
    return True
"""
MINE = """
def check(number):
    return number > 1 and not [d for d in range(2, int(number ** 0.5) + 1) if number % d == 0]
"""
ZIGZAG = """
def zigzag(text, rows):
    lines, at, step = [''] * rows, 0, 1
    for letter in text:
        lines[at] += letter
        if at == 0:
            step = 1
        elif at == rows - 1:
            step = -1
        at += step
    return '-'.join(lines)
"""
EDITED = """
def solve_it(value, count):
    if value is None:
        return None
    box, place, move = [''] * count, 0, 1
    for item in value:
        box[place] = box[place] + item
        if not place == 0:
            if count - 1 == place:
                move = -1
        else:
            move = 1
        place += move
    answer = '-'.join(box)
    return answer
"""


def task(key: str, source: str, checks: list[tuple[str, object]], name: str) -> Problem:
    tests = tuple(
        {"source": f"def check(candidate):\n    assert candidate({args}) == {value!r}\n"}
        for args, value in checks
    )
    statement = f"Write a function to do what {name} does, nothing else."
    return toy(key, statement, source, style="assert", tests=tests, entry_point=name, gated=True)


GATED = [
    task("a", PRIME, [("7", True), ("9", False), ("2", True), ("1", False)], "is_prime"),
    task("b", ZIGZAG, [("'abcdef', 3", "ae-bdf-c"), ("'abcd', 2", "ac-bd")], "zigzag"),
]


def row(source: str, name: str) -> Problem:
    statement = "Return the price of the cheapest flight between two cities."
    return toy("row", statement, source, style="assert", tests=(), entry_point=name)


def test_a_function_of_every_course_is_common_and_another_is_not(sandbox: Sandbox) -> None:
    assert common(GATED, sandbox) == {GATED[0].problem_id: "is prime"}


@pytest.mark.slow
def test_a_program_that_does_what_every_course_teaches_is_a_suspect(sandbox: Sandbox) -> None:
    (finding,) = find_leaks([row(MINE, "check")], GATED, sandbox)
    assert (finding.verdict, finding.gated_id) == ("suspect", GATED[0].problem_id)


def test_an_edited_copy_under_another_statement_is_a_leak(sandbox: Sandbox) -> None:
    (finding,) = find_leaks([row(EDITED, "solve_it")], GATED, sandbox)
    assert (finding.verdict, finding.gated_id) == ("leak", GATED[1].problem_id)
    assert finding.kind == "same behaviour"


def test_another_program_that_does_the_same_is_a_suspect(sandbox: Sandbox) -> None:
    other = (
        "def solve_it(s, r):\n    turn = 2 * (r - 1) or 1\n"
        "    return '-'.join(''.join(c for i, c in enumerate(s) "
        "if min(i % turn, turn - i % turn) == k) for k in range(r))\n"
    )
    (finding,) = find_leaks([row(other, "solve_it")], GATED, sandbox)
    assert finding.verdict == "suspect"


def test_each_function_of_the_textbook_is_a_program() -> None:
    for function in textbook():
        exec(function.solutions[0], {})
