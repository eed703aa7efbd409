"""Tests of answers whose order is free: "You may return the answer in any order".

Where every expected result is a list of texts or numbers, they become calls that are compared
without order. Lists of lists stay as they are: the order of the inner ones may be free too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from problems.schema import Problem
from sandbox.wire import decode
from sandbox.worker.literal import claims

# Not "return the number of ways to visit in any order".
_ANY_ORDER = re.compile(
    r"\b(?:(?:print|output|return|report|answer)(?:s|ed|ted)?|listed|list (?:all|the|them))\b"
    r"(?:(?!\bnumber of\b|\bcount\b|\bways\b|\bminimum\b|\bmaximum\b|\bby \w+ing\b).)*"
    r"\bin\W+(?:any|an\W+arbitrary|arbitrary|whatever)\W+order\b",
    re.IGNORECASE | re.DOTALL,
)


def says_any_order(sentence: str) -> bool:
    """Return whether a sentence leaves the order of the answer free."""
    return bool(_ANY_ORDER.search(sentence))


def in_any_order(problem: Problem) -> Problem:
    """Return the problem with tests that ignore the order of results, if they can."""
    if problem.compare != "exact" or problem.checker is not None or problem.extra.get("in_place"):
        return problem
    tests = problem.tests if problem.style == "call" else tuple(_calls(problem))
    if not tests or not all(_is_flat(test["expected"]) for test in tests):
        return problem
    return replace(problem, style="call", tests=tests, compare="unordered")


def _calls(problem: Problem) -> Iterator[dict[str, Any]]:
    """Yield the calls of tests that only compare calls with literals; none if one does more, or if
    a statement shows a test of several.
    """
    read = [claims(str(test.get("source")), problem.entry_point or "") for test in problem.tests]
    plain = all(each and all(claim.how == "equal" for claim in each) for each in read)
    if not plain or (problem.visible_tests and any(len(each or ()) > 1 for each in read)):
        return
    for claim in (claim for each in read for claim in each or ()):
        args, kwargs = decode(claim.call)
        yield {"args": args, "kwargs": kwargs, "expected": decode(claim.want)}


def _is_flat(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str | int | float) for each in value)
