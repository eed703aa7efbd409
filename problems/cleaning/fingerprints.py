"""Recognize gated tasks without their data, by fingerprints that are part of the package.

In: a problem. Out: the gated task whose statement without examples, solution or tests it has.
`fingerprints.json` holds 48-bit hashes and no text, written by measurements/gated_statements.py.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from artifacts.hashing import hash_text
from problems.cleaning.similarity import TELLING, core, programs, tests
from problems.schema import Problem
from problems.syntax import code_tokens, shape

FILE = Path(__file__).with_name("fingerprints.json")
MIN_TOKENS = 40  # a shorter program is shared by unrelated problems
MIN_TESTS, MIN_SHARE = 2, 0.65  # as for "same tests" in contamination.py
MAX_TESTS = 12  # stored per task


class Match(NamedTuple):
    """A gated task, and what a problem has in common with it."""

    task: str
    kind: str
    detail: str


def fingerprint(problem: Problem) -> dict[str, list[str]]:
    """Return the hashes of a problem's statement, solutions and telling tests, as stored."""
    telling = [test for test in dict.fromkeys(tests(problem)) if len(test) >= TELLING]
    return {
        "statement": _digests([core(problem.statement)]),
        "programs": _digests(
            shape(source) for source in programs(problem) if len(code_tokens(source)) >= MIN_TOKENS
        ),
        "tests": _digests(telling),
    }


def known_task(problem: Problem) -> Match | None:
    """Return the gated task that a problem copies, or None."""
    statements, solutions, known_tests, counts = _known()
    own = fingerprint(problem)
    for kind, digests, known in (
        ("same statement", own["statement"], statements),
        ("same solution", own["programs"], solutions),
    ):
        for digest in digests:
            if digest in known:
                return Match(known[digest], kind, "by its fingerprint")
    shared = Counter(task for digest in own["tests"] for task in known_tests.get(digest, ()))
    for task, count in shared.most_common(1):
        smaller = min(len(own["tests"]), counts[task])
        if count >= MIN_TESTS and count >= MIN_SHARE * smaller:
            return Match(task, "same tests", f"{count} of {smaller}, by their fingerprints")
    return None


def guarded() -> frozenset[str]:
    """Return the sources whose gated tasks have fingerprints."""
    return frozenset(_stored())


def _digests(texts: Iterable[str]) -> list[str]:
    return [hash_text(text)[:12] for text in texts]


@cache
def _stored() -> dict[str, dict[str, dict[str, list[str]]]]:
    stored: dict[str, dict[str, dict[str, list[str]]]] = json.loads(FILE.read_text("utf-8"))
    return stored


@cache
def _known() -> tuple[dict[str, str], dict[str, str], dict[str, list[str]], dict[str, int]]:
    """Return the tasks by hash of statement, solution and test, and each task's test count."""
    statements, solutions = dict[str, str](), dict[str, str]()
    known_tests, counts = dict[str, list[str]](), dict[str, int]()
    for tasks in _stored().values():
        for task, hashes in tasks.items():
            statements |= dict.fromkeys(hashes["statement"], task)
            solutions |= dict.fromkeys(hashes["programs"], task)
            counts[task] = len(hashes["tests"])
            for digest in hashes["tests"]:
                known_tests.setdefault(digest, []).append(task)
    return statements, solutions, known_tests, counts
