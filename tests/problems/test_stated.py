"""What a statement says of the error of answers, and tests that are cut off."""

from __future__ import annotations

from dataclasses import replace

import pytest

from problems.columns import ProblemError
from problems.reading.cut_tests import without_cut_tests
from problems.reading.stated import stated_tolerance, with_stated_tolerance
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
    assert with_stated_tolerance(stated).tolerance == 1e-6
    assert with_stated_tolerance(replace(stated, tolerance=0.1)).tolerance == 0.1
    assert with_stated_tolerance(replace(stated, checker="def check(): ...")).tolerance is None


@pytest.mark.parametrize(
    "pair",
    [("9\n1 2 3 4...", "45"), ("9\n1 2 3 4…\n", "45"), ("9", "1 2 3..."), ("a" * 101 + "...", "1")],
)
def test_a_cut_test_is_left_out_and_counted(pair: tuple[str, str]) -> None:
    kept = without_cut_tests(program("Print it.", ("1", "1"), pair, ("2", "3"), visible=2), "here")
    assert [test["stdin"] for test in kept.tests] == ["1", "2"]
    assert (kept.visible_tests, kept.extra["cut_tests"]) == (1, 1)


@pytest.mark.parametrize(
    "pair", [("#..\n..1\n1...", "2"), ("1", "Loading..."), ("1 .. 2", "1 ..\n2..."), ("...", "1")]
)
def test_dots_that_belong_to_the_data_stay(pair: tuple[str, str]) -> None:
    problem = program("Print it.", pair)
    assert without_cut_tests(problem, "here") is problem


def test_a_problem_of_cut_tests_alone_is_refused() -> None:
    with pytest.raises(ProblemError, match="every test is cut off"):
        without_cut_tests(program("Print it.", ("1 2 3...", "6")), "here")
