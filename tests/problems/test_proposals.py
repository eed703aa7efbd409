"""What is read out of a model's replies, and what its programs agree on: a problem, or a reason why there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from problems.schema import Problem
from problems.synthesis.proposals import Proposal, program_of, proposal_of
from problems.synthesis.synthesize import Synthesis, _decided
from problems.verification.outputs import Output

SEED = Problem(
    "toy/1",
    "toy",
    "Write f(x).",
    "call",
    ({"args": [1], "expected": 2},),
    "f",
    solutions=("def f(x):\n    return x + 1\n",),
    licence="MIT",
)
CONFIG = Synthesis(model="tiny", answers=2)
GOOD = "## Problem\nWrite f(x), one more.\n## Solution\n```python\ndef f(x):\n    return x + 1\n```\n## Inputs\n[[1], [2], [-1]]\n"


def test_a_proposal_is_read_out_of_its_sections() -> None:
    found = proposal_of("Sure!\n" + GOOD)
    assert found == Proposal(
        "Write f(x), one more.",
        "f",
        "def f(x):\n    return x + 1\n",
        ({"args": [1]}, {"args": [2]}, {"args": [-1]}),
    )


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda t: "", "no section problem"),
        (lambda t: t.split("## Inputs")[0], "no section inputs"),
        (lambda t: t.replace("def f", "deff"), "its solution defines no function"),
        (
            lambda t: t.replace("Write f(x)", "Write g(x)"),
            "its statement does not name the function",
        ),
        (lambda t: t.replace("[-1]]", "[-1"), "its inputs are no JSON"),
        (
            lambda t: t.replace("[[1], [2], [-1]]", "[1, 2, 3]"),
            "its inputs are no list of lists of arguments",
        ),
        (lambda t: t.replace("[2], [-1]", "[1], [1]"), "fewer than 3 inputs"),
        (lambda t: t.replace("[-1]]", "[" * 5000), "its inputs are no JSON"),
    ],
)
def test_a_proposal_that_is_none_is_refused_by_name(change: Callable[[str], str], why: str) -> None:
    assert proposal_of(change(GOOD)) == why


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("def f(x): return 1", "def f(x): return 1\n"),
        (
            "No: ```python\ndef f(x): return 1\n```\nBetter:\n```\ndef f(x): return 2\n```",
            "def f(x): return 2\n",
        ),
        ("```python\ndef f(x): return 1", "def f(x): return 1\n"),
        ("```python\ndef g(x): return 1\n```", None),
        ("I cannot.", None),
    ],
)
def test_a_program_is_read_out_of_an_answer(text: str, program: str | None) -> None:
    assert program_of(text, "f") == program


def decided(*rows: list[Any]) -> Any:
    """What comes of programs that gave these values; an exception stands for a fault. The first program is the proposer's."""
    proposal = Proposal(
        "Write f(x).", "f", "def f(x): ...\n", tuple({"args": [n]} for n in range(len(rows[0])))
    )
    sources = [f"def f(x):\n    return {n}\n" for n in range(len(rows))]
    told = [
        [Output(fault="RE") if value is None else Output(value) for value in row] for row in rows
    ]
    return _decided(SEED, proposal, sources, told, CONFIG)


def test_two_programs_that_agree_make_the_tests_and_the_others_are_no_solutions() -> None:
    made = decided([9, 9, 9, 9], [1, 2, 3, None], [1, 2, 3, None], [1, 2, 4, 5])
    assert [test["expected"] for test in made.tests] == [1, 2, 3] and len(made.solutions) == 2
    assert made.parents == ("toy/1",) and made.licence == "MIT" and made.split == "train"


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([[1, 2, 3]], "no answer defines the function"),
        ([[1, 2, 3], [1, 2, 4], [1, 2, 5]], "no two programs agree"),
        ([[None] * 3, [None] * 3], "its programs fail on every input"),
        ([[1, 2, None], [1, 2, None]], "its programs fail on nearly all inputs"),
        ([[1, 1, 1], [1, 1, 1]], "the same comes out whatever goes in"),
    ],
)
def test_what_nobody_agrees_on_is_refused_by_name(rows: list[list[Any]], why: str) -> None:
    assert decided(*rows).reason == why
