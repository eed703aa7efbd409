"""Functions of every course are told from the others, and a program alone is no copy of them."""

from __future__ import annotations

import pytest

from problems.cleaning.leaks import BEHAVIOUR, Leak, find_leaks
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
OTHER = """
def solve_it(s, r):
    turn = 2 * (r - 1) or 1
    places = [min(i % turn, turn - i % turn) for i in range(len(s))]
    return '-'.join(''.join(c for c, at in zip(s, places) if at == k) for k in range(r))
"""

HELPER = """
def verse_after(number):
    return number - 1 if number > 0 else 99
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
    task("c", "def before(n):\n    return n - 1\n", [("7", 6), ("12", 11), ("3", 2)], "before"),
]


def row(key: str, source: str, name: str = "solve_it") -> Problem:
    statement = "Return the price of the cheapest flight between two cities."
    return toy(key, statement, source, style="assert", tests=(), entry_point=name)


def test_a_function_of_every_course_is_common_and_another_is_not(sandbox: Sandbox) -> None:
    assert common(GATED, sandbox) == {GATED[0].problem_id: "is prime"}


@pytest.fixture(scope="module")
def findings(sandbox: Sandbox) -> dict[str, Leak]:
    rows = [
        row("mine", MINE, "check"),
        row("edited", EDITED),
        row("other", OTHER),
        row("helper", HELPER, "verse_after"),
    ]
    return {leak.problem_id: leak for leak in find_leaks(rows, GATED, sandbox)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "verdict", "task"),
    [
        ("mine", "suspect", 0),
        ("edited", "leak", 1),
        ("other", "suspect", 1),
        ("helper", "suspect", 2),
    ],
    ids=[
        "what every course teaches",
        "an edited copy",
        "another program that does the same",
        "a program that differs where the task's tests do not look",
    ],
)
def test_behaviour_alone_is_a_suspicion_and_an_edited_copy_a_leak(
    findings: dict[str, Leak], key: str, verdict: str, task: int
) -> None:
    finding = findings[f"toy/{key}"]
    assert (finding.verdict, finding.gated_id) == (verdict, GATED[task].problem_id)
    assert verdict == "suspect" or finding.kind == BEHAVIOUR


def test_each_function_of_the_textbook_is_a_program() -> None:
    for function in textbook():
        exec(function.solutions[0], {})
