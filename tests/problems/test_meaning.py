"""Words that change a task count, however near a sentence model finds two statements."""

from __future__ import annotations

import pytest

from problems.cleaning.meaning import same_meaning
from tests.problems.test_curation import toy


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Find the smallest even number of a list.", "Find the largest even number of a list."),
        ("Swap the last and last elements.", "Swap the first and last elements."),
        ("Check whether a month has 28 days.", "Check whether a month has 31 days."),
    ],
)
def test_contrasting_words_outweigh_a_high_similarity(one: str, other: str) -> None:
    assert not same_meaning(toy("a", one), toy("b", other), 0.99)


def test_equal_words_are_no_contrast() -> None:
    one, other = (
        toy("a", "Find the biggest of two values."),
        toy("b", "Get the maximum of 2 values."),
    )
    assert same_meaning(one, other, 0.9) and not same_meaning(one, other, 0.7)


def test_the_same_name_lowers_the_similarity_that_is_needed() -> None:
    one = toy("a", "Find the biggest value.", entry_point="find_maximum")
    other = toy("b", "Get the maximum.", entry_point="find_maximum")
    assert same_meaning(one, other, 0.65)
