"""Reading proposals from replies, and the agreement of their programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from problems.schema import Problem
from problems.synthesis.proposals import Proposal, program_of, proposal_of
from problems.synthesis.settings import Synthesis
from problems.synthesis.synthesize import _decided
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
GOOD = (
    "## Problem\nWrite f(x), one more.\n## Solution\n```python\ndef f(x):\n    return x + 1\n"
    "```\n## Inputs\n[[1], [2], [-1]]\n"
)


def test_a_proposal_is_read_from_its_sections() -> None:
    proposal = proposal_of("Sure!\n" + GOOD)
    assert proposal == Proposal(
        "Write f(x), one more.",
        "f",
        "def f(x):\n    return x + 1\n",
        ({"args": [1]}, {"args": [2]}, {"args": [-1]}),
    )


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda t: "", "section problem"),
        (lambda t: t.split("## Inputs")[0], "section inputs"),
        (lambda t: t.replace("def f", "deff"), "defines no function"),
        (
            lambda t: t.replace("Write f(x)", "Write g(x)"),
            "name the function",
        ),
        (lambda t: t.replace("[-1]]", "[-1"), "JSON"),
        (
            lambda t: t.replace("[[1], [2], [-1]]", "[1, 2, 3]"),
            "list of lists",
        ),
        (lambda t: t.replace("[2], [-1]", "[1], [1]"), "3 inputs"),
        (lambda t: t.replace("[-1]]", "[" * 5000), "JSON"),
    ],
)
def test_an_invalid_proposal_is_refused_with_its_reason(
    change: Callable[[str], str], why: str
) -> None:
    reason = proposal_of(change(GOOD))
    assert isinstance(reason, str)
    assert why in reason


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
def test_a_program_is_extracted_from_a_reply(text: str, program: str | None) -> None:
    assert program_of(text, "f") == program


def decided(*rows: list[Any]) -> Any:
    """Decide on programs with these outputs, None for a fault; the first is the proposer's."""
    proposal = Proposal(
        "Write f(x).", "f", "def f(x): ...\n", tuple({"args": [n]} for n in range(len(rows[0])))
    )
    sources = [f"def f(x):\n    return {n}\n" for n in range(len(rows))]
    outputs = [
        [Output(fault="RE") if value is None else Output(value) for value in row] for row in rows
    ]
    return _decided(SEED, proposal, sources, outputs, CONFIG)


def test_agreeing_programs_define_tests_and_solutions() -> None:
    problem = decided([9, 9, 9, 9], [1, 2, 3, None], [1, 2, 3, None], [1, 2, 4, 5])
    assert [test["expected"] for test in problem.tests] == [1, 2, 3]
    assert len(problem.solutions) == 2
    assert problem.parents == ("toy/1",)
    assert problem.licence == "MIT"
    assert problem.split == "train"


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([[1, 2, 3]], "defines the function"),
        ([[1, 2, 3], [1, 2, 4], [1, 2, 5]], "agree"),
        ([[None] * 3, [None] * 3], "every input"),
        ([[1, 2, None], [1, 2, None]], "nearly all inputs"),
        ([[1, 1, 1], [1, 1, 1]], "same"),
    ],
)
def test_a_proposal_without_agreement_is_refused_with_its_reason(
    rows: list[list[Any]], why: str
) -> None:
    assert why in decided(*rows).reason
