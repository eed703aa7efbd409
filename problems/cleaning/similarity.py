"""How similar two problems are: their statements, their solutions up to renaming, their tests.

In: problems. Out: `Traits`, the compared properties of one problem; `Kin`, an exact comparison of
two. `sketch.py` finds the few pairs worth comparing among many. The thresholds are in duplicates.py
and contamination.py, where they decide something.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import NamedTuple

from problems.cleaning.minhash import (
    Hashes,
    jaccard,
    shingles,
)
from problems.cleaning.normalize import normalize
from problems.cleaning.prose import prose
from problems.schema import Problem
from problems.syntax import DEFINITION, RESERVED, code_tokens, shape, tree_of, used_by
from sandbox.styles.source_text import literal

# Sizes of shingles: words and pairs of words (statements are short); runs of five tokens.
WORDS, CODE = ((1, 2), (5,))
LEAD = re.compile(r"^\s*write (?:a|the) (?:python )?function (?:to|that|which) ")
WORD = re.compile(r"\w+|[<>=+*/%^&|!]+|(?<![a-z])-|-(?![a-z])")
FILLERS = frozenset(
    re.findall(
        r"\w+",
        "a an the of for to in is are be by on with and that this which it its from as given "
        "function python write find return returns calculate "
        "compute create implement program method using use please your you",
    )
)
MIN_CORE = 8  # words of a statement without its examples that tell it from others
TELLING = 16  # characters: a short test like `[[2]] -> True` agrees with half of all problems
# Share of signature rows that must agree: two standard errors below the limits of `near_duplicate`
# (duplicates.py) and `judge_overlaps` (contamination.py).
MIN_STATEMENT, MIN_PROGRAM = (0.5, 0.7)
MAX_TEST = 300_000  # a longer test source (in characters) is not parsed


def squeezed(statement: str) -> str:
    """Return the statement without case and layout.

    Punctuation is kept, because it is often the only difference (`<`, `>`).
    """
    return " ".join(normalize(statement).lower().split())


def core(statement: str) -> str:
    """Return the squeezed prose of a statement, or all of it if the prose is a few words."""
    short = squeezed(prose(statement))
    return short if len(short.split()) >= MIN_CORE else squeezed(statement)


def words(statement: str) -> list[str]:
    """Return the lower-case words, numbers and signs of a statement.

    Leaves out "Write a function to", which half of MBPP shares.
    """
    return WORD.findall(LEAD.sub("", normalize(statement).lower()))


def programs(problem: Problem) -> list[str]:
    """Return the solutions without the starter code at their start, if runnable code is left, and
    without what the entry point does not use: a module may hold the solutions of several problems.
    """
    starter = problem.starter_code
    rests = [
        solution[len(starter) :] if starter and solution.startswith(starter) else ""
        for solution in problem.solutions
    ]
    return [
        used_by(rest if DEFINITION.search(rest) else whole, problem.entry_point or "")
        for rest, whole in zip(rests, problem.solutions, strict=True)
    ]


def tests(problem: Problem) -> list[str]:
    """Return each test's input and expected output as text.

    The text is the same for a call and an assertion, whatever the function's name; tuples are
    written as lists.
    """
    match problem.style:
        case "call":
            return [
                _claim([*test.get("args", ()), *test.get("kwargs", {}).values()], test["expected"])
                for test in problem.tests
            ]
        case "stdio":
            return [
                f"{' '.join(test['stdin'].split())} -> {' '.join(test['stdout'].split())}"
                for test in problem.tests
            ]
        case _ if problem.kind.is_code:
            return [
                text
                for test in problem.tests
                for text in _assertions(test["source"], problem.entry_point)
            ]
        case _:
            return [str(test) for test in problem.tests]


@dataclass(frozen=True)
class Traits:
    """The compared properties of one problem, computed on first use."""

    problem: Problem

    @cached_property
    def words(self) -> list[str]:
        return words(self.problem.statement)

    @cached_property
    def telling_words(self) -> list[str]:
        """The words that carry meaning, in order.

        "camel case to snake case" is not "snake case to camel case".
        """
        return [word.removesuffix("s") for word in self.words if word not in FILLERS]

    @cached_property
    def statement(self) -> Hashes:
        return shingles(self.words, WORDS)

    @cached_property
    def programs(self) -> list[tuple[str, int, Hashes]]:
        """Shape, number of tokens and shingles of each solution."""
        result = []
        for source in programs(self.problem):
            tokens = code_tokens(source)
            result.append((shape(source), len(tokens), shingles(tokens, CODE)))
        return result

    @cached_property
    def tests(self) -> frozenset[str]:
        """The tests that are long enough to be characteristic."""
        return frozenset(test for test in tests(self.problem) if len(test) >= TELLING)


class Kin(NamedTuple):
    """The comparison of two problems; shares are in [0, 1]."""

    statement: float  # Jaccard similarity of words and pairs of words
    same_words: bool  # the same telling words in the same order, at least three
    length: int  # words of the shorter statement
    program: float  # highest Jaccard similarity of two solutions, one of each problem, names aside
    same_program: bool
    size: int  # tokens of the smaller program of the most similar pair
    tests: float  # share of the smaller set of telling tests that is also in the other set
    shared_tests: int


def kin(one: Traits, other: Traits) -> Kin:
    """Compare two problems exactly; the order does not matter."""
    pairs = [
        (mine == theirs, jaccard(a, b), min(n, m))
        for mine, n, a in one.programs
        for theirs, m, b in other.programs
    ]
    same, program, size = max(pairs, default=(False, 0.0, 0))
    shared = len(one.tests & other.tests)
    return Kin(
        statement=jaccard(one.statement, other.statement),
        same_words=one.telling_words == other.telling_words and len(one.telling_words) >= 3,
        length=min(len(one.words), len(other.words)),
        program=max(program, float(same)),
        same_program=same,
        size=size,
        tests=shared / max(1, min(len(one.tests), len(other.tests))),
        shared_tests=shared,
    )


def key(text: str) -> int:
    """Return 64 bits of a hash of the text."""
    return int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest())


def _claim(arguments: object, expected: object) -> str:
    """Format a test; lists and tuples look the same, because JSON does not distinguish them."""
    text = (
        f"{literal(arguments)} -> "
        f"{literal(sorted(expected, key=literal) if isinstance(expected, (set, frozenset)) else expected)}"  # noqa: E501
    )
    return text.translate(FLAT).replace(",]", "]")


FLAT = str.maketrans("()", "[]")


def _assertions(source: str, entry_point: str | None) -> Iterator[str]:
    """Yield the assertions of a test that use only the tested function, literals and builtins.

    Assertions that depend on a variable are left out.
    """
    if len(source) > MAX_TEST or (tree := tree_of(source)) is None:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            text = _assertion(node.test, {"candidate", entry_point})
            if text is not None:
                yield text


def _assertion(test: ast.expr, names: set[str | None]) -> str | None:
    call: ast.expr = test
    expected: ast.expr = ast.Constant(value=True)
    if (
        isinstance(test, ast.Compare)
        and len(test.ops) == 1
        and isinstance(test.ops[0], (ast.Eq, ast.Is))
    ):
        call, expected = sorted(
            (test.left, test.comparators[0]), key=lambda side: not isinstance(side, ast.Call)
        )
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        call, expected = test.operand, ast.Constant(value=False)
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in names:
        try:
            arguments = [
                ast.literal_eval(argument)
                for argument in [*call.args, *(word.value for word in call.keywords)]
            ]
            return _claim(arguments, ast.literal_eval(expected))
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            pass  # not only literals
    for node in ast.walk(test):
        if isinstance(node, ast.Name):
            if node.id not in names | RESERVED:
                return None
            node.id = "candidate" if node.id in names else node.id
    return ast.unparse(test)
