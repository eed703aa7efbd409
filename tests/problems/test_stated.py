"""What a statement says of the error of answers, and tests that are cut off."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from problems.columns import ProblemError
from problems.reading.any_answer import any_answer
from problems.reading.cut_tests import without_cut_tests
from problems.reading.stated import stated_tolerance, with_stated
from problems.schema import Problem


def program(statement: str = "Print it.", *pairs: tuple[str, str], visible: int = 0) -> Problem:
    tests = tuple({"stdin": stdin, "stdout": stdout} for stdin, stdout in pairs or [("1", "2")])
    return Problem("own/1", "own", statement, "stdio", tests, visible_tests=visible)


@pytest.mark.parametrize(
    ("sentence", "tolerance"),
    [
        ("The absolute or relative error of your answer must not exceed 10^-6.", 1e-6),
        ("An absolute or relative error up to 1e-6 is accepted.", 1e-6),
        ("It is accepted if its absolute error does not exceed $$$10^{-9}$$$.", 1e-9),
        ("Answers within 10^-5 of the actual answer will be accepted.", 1e-5),
        ("Print the area with an absolute or relative inaccuracy of at most 0.0001.", 1e-4),
        ("The relative error of the result should be below 10⁻⁶.", 1e-6),
        ("Your answer is right if it differs by at most 10**-4 from the jury's.", 1e-4),
        ("absolute or relative error should not exceed 10 - 6", 1e-6),
        ("Your answer is correct if its error\nis less than 1E-6.", 1e-6),
        ("It is accepted if |a - b| / max(1, |b|) <= 10^{-6}.", 1e-6),
        ("Print the mean with at least 6 digits after the decimal point.", 1e-6),
        ("Print a password of at least 8 digits.", None),
        ("Print it with exactly 6 digits after the decimal point.", None),
        ("Print the sum. The numbers are at least 10^-6 and at most 10^6.", None),
        ("Each step is of length 0.001. Print the number of steps.", None),
        ("Round the answer to 6 decimals.", None),
        ("The numbers are given with a precision of 0.01.", None),
        ("Print the error message of 10^9 machines.", None),
    ],
)
def test_the_stated_tolerance_is_read(sentence: str, tolerance: float | None) -> None:
    assert stated_tolerance(f"Given n.\n\n{sentence} Good luck.") == tolerance


def test_a_tolerance_of_its_own_stays() -> None:
    stated = program("An error of 10^-6 is accepted.")
    assert with_stated(stated).tolerance == 1e-6
    assert with_stated(replace(stated, tolerance=0.1)).tolerance == 0.1
    assert with_stated(replace(stated, checker="def check(): ...")).tolerance is None


@pytest.mark.parametrize(
    ("sentence", "stdout", "compare"),
    [
        ("You can print each letter in any case (upper or lower), so yes is YES.", "YES", "loose"),
        ("The checker ignores the case of letters in YES and NO.", "YES", "loose"),
        ("Print YES or NO; the checker is case-insensitive.", "Yes\nNo", "loose"),
        ("Print each letter in any case.", "aBcD", "exact"),
        ("Print YES. In any case there is a path.", "YES", "exact"),
        ("Letters of the input may be in any case.", "input", "exact"),
    ],
)
def test_the_case_of_letters_is_free_where_the_statement_says_so(
    sentence: str, stdout: str, compare: str
) -> None:
    assert with_stated(program(f"Given n.\n\n{sentence}", ("1", stdout))).compare == compare


@pytest.mark.parametrize(
    ("test", "style"),
    [
        ("assert candidate(n=5) == [1, 4]\n    assert candidate(1) == []", "call"),
        ("assert candidate(5) == ['a', 'b']", "call"),
        ("assert candidate(5) == [[1, 4], [2, 3]]", "assert"),
        ("assert candidate(5) == 1", "assert"),
        ("assert sorted(candidate(5)) == [1, 4]", "assert"),
        ("assert candidate(make([5])) == [1, 4]", "assert"),
    ],
)
def test_a_list_in_any_order_is_compared_without_order(test: str, style: str) -> None:
    tests = ({"source": f"def check(candidate):\n    {test}\n"},)
    problem = Problem("own/1", "own", "Return them in any order.", "assert", tests, "f")
    stated = with_stated(problem)
    assert (stated.style, stated.compare == "unordered") == (style, style == "call")
    assert stated.content_hash != problem.content_hash or stated is problem


@pytest.mark.parametrize(
    "pair",
    [
        ("9\n1 2 3 4...", "45"),
        ("9\n1 2 3 4…\n", "45"),
        ("9", "1 2 3..."),
        ("1 2 3 ...", "9"),
        ("a" * 101 + "...", "1"),
        ("1 [...]", "1"),
        ("2\n1 2 [...]", "3"),
        ("1 2 (truncated)", "3"),
        ("1 2", "[output truncated]"),
        ("4\n1 2 ... 38 more items", "3"),
    ],
)
def test_a_cut_test_is_left_out_and_counted(pair: tuple[str, str]) -> None:
    kept = without_cut_tests(program("Print it.", ("1", "1"), pair, ("2", "3"), visible=2), "here")
    assert [test["stdin"] for test in kept.tests] == ["1", "2"]
    assert (kept.visible_tests, kept.extra["cut_tests"]) == (1, 1)


@pytest.mark.parametrize(
    "pair",
    [
        ("#..\n..1\n1...", "2"),
        ("1", "Loading..."),
        ("3 ...", "3"),
        ("1 .. 2", "1 ..\n2..."),
        ("...", "1"),
        ("1", "[1, [...]]"),
        ("1", "The line is truncated"),
    ],
)
def test_dots_that_belong_to_the_data_stay(pair: tuple[str, str]) -> None:
    problem = program("Print it.", pair)
    assert without_cut_tests(problem, "here") is problem


def test_a_problem_of_cut_tests_alone_is_refused() -> None:
    with pytest.raises(ProblemError, match="every test is cut off"):
        without_cut_tests(program("Print it.", ("1 2 3...", "6")), "here")


def called(statement: str, expected: object, **more: Any) -> Problem:
    tests = ({"args": [5], "expected": expected},)
    return Problem("own/1", "own", statement, "call", tests, entry_point="f", **more)


@pytest.mark.parametrize(
    "sentence",
    [
        "If there are several solutions, print any of them.",
        "If there is more than one possible answer, you may output any.",
        "If nodes[i] has multiple answers for any node i, you can choose any one answer.",
        "Return any permutation of nums that maximizes its advantage.",
        "Print one integer — any positive integer value of x so that x divides n.",
        "If the first player wins, print any winning first move.",
        "If there are several such sequences, any of them is acceptable.",
        "If there are several partitions, Petya will be satisfied by any of them.",
        "If there are multiple solutions, print one of them.",
        "Any valid answer will be accepted.",
        "There may be several solutions; all of them are accepted.",
        "The solution is not unique; any correct one will do.",
        "Print one of the possible answers.",
        "You may return the answer in any order.",
        "Choose any of the valid orderings.",
        "If several orderings are valid, choose any of them.",
        "You may pick any valid ordering.",
        "Any valid ordering will do.",
        "Return one valid topological order.",
        "Ties may be broken arbitrarily.",
        "It doesn't matter which of the optimal subsets is returned.",
        "The order need not be unique; print one.",
        "If there are several such paths, choose one arbitrarily.",
        "Give any such string.",
        "If there are several, choose any.",
        "When more than one subsequence qualifies, report an arbitrary one.",
        "If two or more cities tie, name any of them.",
        "Construct any such matrix.",
        "Where multiple colourings exist, the choice is yours.",
        "If several sets exist, it is up to you which one you print.",
        "If multiple such numbers exist, either one is a correct answer.",
        "Write down any sequence that satisfies these conditions.",
        "There can be several correct answers; yours may differ from the sample.",
    ],
)
def test_words_for_any_answer_are_read(sentence: str) -> None:
    statement = f"Given n. {sentence} Good luck."
    assert any_answer(called(statement, [1, 4])) == sentence.rstrip(".")


@pytest.mark.parametrize(
    "sentence",
    [
        "You can print each letter in any case.",
        "It is guaranteed that there are no multiple edges, and any city can be reached.",
        "If there are several options for x, output the smallest one.",
        "Print the number of moves required to reach any position.",
        "Return the number of ways to visit the nodes in any order.",
        "There are too many answers in the third test, so we won't describe any of them.",
        "The function does not return any value.",
        "Print one of the words that the tests contain.",
        "All of them are considered, and the count is accepted as a number.",
        "If there is more than one pile with the most gifts, choose any.",
        "Alice can choose any valid move.",
        "If there are several such snacks, Ann will choose one arbitrarily.",
        "If there are several such elements, choose any of them and remove it.",
        "If there are many such paths, print the one with the fewest turns.",
        "Give any such student a bonus of 10 points.",
        "If there are several queries, answer each of them.",
        "In the third case, any choice will do.",
        "If he cannot find any such snack, he fails.",
        "They differ if either of the following conditions is satisfied.",
        "In case of a tie, print the smallest of them.",
        "The path is not unique; print the one with the smallest sum.",
        "items is a list of pairs, in any order.",
        'Print either "YES" or "NO".',
    ],
)
def test_other_words_with_any_are_not(sentence: str) -> None:
    assert any_answer(called(f"Given n. {sentence} Good luck.", [1, 4])) == ""


def test_a_chosen_thing_is_the_answer_where_the_statement_asks_for_it() -> None:
    chosen = "If there are several longest walks, choose any."
    assert any_answer(called(f"Print the longest walk. {chosen}", [1, 4]))
    assert not any_answer(called(f"Print the number of walks left. {chosen}", [1, 4]))


ANY, ORDER = "Return any valid answer.", "Return them in any order."


@pytest.mark.parametrize(
    ("problem", "several"),
    [
        (called(ANY, [1, 4], checker="def check(): ..."), False),
        (called(ANY, True), False),
        (called(ORDER, [4]), False),
        (called(ORDER, [1, 4], compare="unordered"), False),
        (called(ANY, [1, 4], compare="unordered"), True),
        (program(ANY, ("5", "YES")), False),
        (program(ANY, ("5", "1 4")), True),
    ],
)
def test_the_tests_decide_whether_several_answers_differ(problem: Problem, several: bool) -> None:
    assert bool(any_answer(problem)) == several


@pytest.mark.parametrize(
    ("line", "several"),
    [
        ("assert candidate(n=5) == [1, 4]", True),
        ("assert is_same_list(candidate(5), make([1, 4]))", True),
        ("assert sorted(candidate(5)) == [1, 4]", False),
        ("assert sum(candidate(5)) == 5", False),
    ],
)
def test_tests_that_check_the_answer_themselves_are_kept(line: str, several: bool) -> None:
    source = f"def check(candidate):\n    {line}\n"
    problem = Problem("own/1", "own", ORDER, "assert", ({"source": source},), entry_point="f")
    assert bool(any_answer(problem)) == several
