"""When a final answer in mathematics is correct.

The judged pairs are in `math_pairs.tsv`.
"""

from __future__ import annotations

import csv
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewards.mathematics.equality import accepted
from rewards.mathematics.reader import read
from rewards.mathematics.text import canonical
from rewards.mathematics.tree import Unreadable

with Path(__file__).with_name("math_pairs.tsv").open(encoding="utf-8") as file:
    PAIRS = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE, restval=""))
TEXT = st.text(
    st.sampled_from("0123456789abxABC+-*/^_=<>!|%,;:.()[]{}\\ √½²π∑") | st.characters(), max_size=40
)
_PIECES = (
    "\\frac \\sqrt \\sum \\int \\text{a} \\pm \\cup \\{ \\} { } ( ) [ ] | 1 2 x , "
    "= ^ _ \\le \\in \\\\ & +"
)
COMMANDS = st.lists(st.sampled_from(_PIECES.split()), max_size=20)
NUMBERS = st.integers(2, 99)


@pytest.mark.parametrize(
    "pair",
    PAIRS,
    ids=[f"{pair['right']} {pair['answer']} {pair['question']}".strip() for pair in PAIRS],
)
def test_math_answers_are_judged_as_in_the_table(pair: dict[str, str]) -> None:
    assert accepted(pair["right"], pair["answer"], pair["question"]) is (pair["verdict"] == "AC")


@given(TEXT | COMMANDS.map(" ".join))
def test_any_text_is_parsed_or_unreadable(text: str) -> None:
    with suppress(Unreadable):
        read(text)


@given(TEXT | COMMANDS.map(" ".join))
def test_the_correct_answer_verbatim_is_accepted(text: str) -> None:
    assert accepted(text, text)
    assert accepted(text, f" {text} ")


ARITHMETIC = {
    "{}+{}-{}": lambda a, b, c: a + b - c,
    "{}\\cdot {}+{}": lambda a, b, c: a * b + c,
    "({}+{})\\times {}": lambda a, b, c: (a + b) * c,
    "{}({}-{})": lambda a, b, c: a * (b - c),
    "{}^2+{} {{{}}}": lambda a, b, c: a**2 + b * c,
    "\\frac{{{}\\cdot {}}}{{1/{}}}": lambda a, b, c: a * b * c,
}


@settings(max_examples=60)
@given(NUMBERS, NUMBERS, NUMBERS, st.sampled_from(sorted(ARITHMETIC)))
def test_an_unevaluated_expression_is_not_accepted(a: int, b: int, c: int, form: str) -> None:
    value = str(ARITHMETIC[form](a, b, c))
    assert accepted(value, value)
    assert not accepted(value, form.format(a, b, c))


@pytest.mark.parametrize(
    ("right", "answer"),
    [
        ("1591", "37 \\times 43"),
        ("120", "\\binom{10}{3}"),
        ("2/3", "\\frac{84}{126}"),
        ("4", "\\sqrt{16}"),
    ],
)
def test_a_question_may_allow_any_form(right: str, answer: str) -> None:
    statement = "Write $\\frac{84}{126}$ in any way."
    assert accepted(right, answer, statement, any_form=True)
    assert not accepted(right, answer, statement)


def test_spaces_between_digits_are_kept() -> None:
    assert canonical("1 2") != canonical("12")
    assert canonical("x + \\frac{1}{k}") == canonical("$x+\\dfrac1k$.")
