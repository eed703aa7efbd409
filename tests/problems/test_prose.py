"""A statement's prose is what is left without its examples."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from problems.cleaning.prose import prose

TASK = "Return the sum of all odd numbers of a list that are above ten."


@pytest.mark.parametrize(
    "dressed",
    [
        f"{TASK}\n>>> odd_sum([11, 12])\n11\n",
        f"{TASK}\n\nExample 1:\n\nInput: nums = [1]\nOutput: 0\n\nConstraints:\n1 <= n",
        f"{TASK} For example, odd_sum([11]) is 11.",
        f"{TASK}\nodd_sum([11, 13]) ➞ 24\n",
        f'from typing import List\n\ndef odd_sum(xs: List[int]) -> int:\n    """ {TASK}\n    """\n',
        f"# {TASK}\ndef odd_sum(xs):\n",
        f"{TASK}\nYour code should pass these tests:\nassert odd_sum([11]) == 11",
    ],
)
def test_examples_and_signatures_do_not_belong_to_the_prose(dressed: str) -> None:
    assert prose(dressed) == TASK


@settings(max_examples=50)
@given(st.text(max_size=300))
def test_the_prose_of_a_text_with_words_is_never_empty(text: str) -> None:
    assert bool(prose(text)) == bool(prose(prose(text)))
    if any(letter.isalpha() and letter.isascii() for letter in text):
        assert prose(text)
