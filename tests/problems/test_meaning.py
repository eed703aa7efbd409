"""Words that change a task count, however near a sentence model finds two statements."""

from __future__ import annotations

import pytest

from problems.cleaning.contamination import GatedIndex
from problems.cleaning.meaning import DOUBTED, meaning, same_meaning
from tests.problems.test_curation import toy


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Find the smallest even number of a list.", "Find the largest even number of a list."),
        ("Swap the last and last elements.", "Swap the first and last elements."),
        ("Check whether a month has 28 days.", "Check whether a month has 31 days."),
        ("Are any two numbers closer than a limit?", "Are any two numbers farther than a limit?"),
        ("Remove what occurs only once.", "Remove what occurs more than once."),
    ],
)
def test_contrasting_words_outweigh_a_high_similarity(one: str, other: str) -> None:
    assert not same_meaning(toy("a", one), toy("b", other), 0.99)


def test_equal_words_are_no_contrast() -> None:
    one, other = (
        toy("a", "Find the biggest of two values."),
        toy("b", "Get the maximum of 2 values."),
    )
    assert same_meaning(one, other, 0.8)
    assert not same_meaning(one, other, 0.7)


def test_one_more_contrasting_word_needs_a_higher_similarity() -> None:
    one, other = toy("a", "Sum the first n cubes."), toy("b", "Sum the first n odd cubes.")
    assert same_meaning(one, other, 0.95)
    assert not same_meaning(one, other, 0.85)


def test_a_program_that_fails_the_tests_raises_the_similarity_that_is_needed() -> None:
    one, other = toy("a", "Find the biggest value."), toy("b", "Get the maximum value.")
    assert same_meaning(one, other, 0.82)
    assert not same_meaning(one, other, 0.82, DOUBTED)


def test_a_name_of_every_course_is_no_evidence() -> None:
    one, other = (
        toy(key, text, entry_point="even_or_odd")
        for key, text in (("a", "Look at the parity."), ("b", "Judge a hexadecimal text."))
    )
    assert not same_meaning(one, other, 0.7)


def test_examples_in_the_line_and_the_signature_are_not_compared() -> None:
    text = 'def f(s): """Count the upper letters of a word. Example: count _ f (\'aB\') = = 1 "" "'
    assert meaning(toy("a", text)) == "Count the upper letters of a word"


def test_words_in_a_row_are_no_leak_where_one_word_is_opposed() -> None:
    text = (
        "Find an {} letter and print each sign that follows it until the next space of the same "
        "line or the very end of the text."
    )
    upper, lower = (toy(case, text.format(case)) for case in ("upper", "lower"))
    kinds = {one.kind: one.leak for one in GatedIndex([upper]).overlaps([lower])}
    assert kinds["words in a row"] is False


def test_the_same_name_lowers_the_similarity_that_is_needed() -> None:
    one = toy("a", "Find the biggest value.", entry_point="find_maximum")
    other = toy("b", "Get the maximum.", entry_point="find_maximum")
    assert same_meaning(one, other, 0.65)
