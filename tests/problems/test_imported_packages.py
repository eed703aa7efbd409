"""The packages that a problem cannot do without are those of its tests and of every solution."""

from __future__ import annotations

import pytest

from problems.reading.imported_packages import imported, with_packages
from problems.schema import Problem


def problem(tests: str, *solutions: str) -> Problem:
    return Problem("x/1", "x", "Do it.", "assert", ({"source": tests},), "f", solutions=solutions)


@pytest.mark.parametrize(
    ("source", "packages"),
    [
        ("import pandas.core as pd", {"pandas"}),
        ("import os, json", set()),
        ("def f():\n    from sklearn import svm", {"sklearn"}),
        ("from . import mine", set()),
        ("try:\n    import numpy\nexcept ImportError:\n    numpy = None", set()),
        ("try:\n    import numpy\nexcept ValueError:\n    pass", {"numpy"}),
    ],
)
def test_an_import_that_may_fail_or_is_standard_is_not_needed(
    source: str, packages: set[str]
) -> None:
    assert imported(source) == packages


def test_one_of_two_solutions_may_need_a_package() -> None:
    assert with_packages(problem("", "import numpy", "x = 1")).packages == ()


def test_the_package_of_the_tests_is_needed() -> None:
    assert with_packages(problem("import pandas", "x = 1")).packages == ("pandas",)
