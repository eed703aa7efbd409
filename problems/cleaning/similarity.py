"""How alike two problems are: in their statements, in their solutions up to the names chosen, in their tests.

In: problems. Out: `Traits`, what is compared of one; `Kin`, two compared exactly; `sketch`, what finds the few pairs worth comparing among many.
The thresholds are in duplicates.py and contamination.py, where they decide something.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from problems.cleaning.minhash import (
    CHUNK,
    PERMUTATIONS,
    Hashes,
    Signatures,
    jaccard,
    shingles,
    signatures,
)
from problems.cleaning.normalize import folded
from problems.encoding import literal
from problems.parallel import spread
from problems.schema import Problem
from problems.syntax import SPOKEN, code_tokens, parse, shape

WORDS, CODE = (
    (1, 2),
    (5,),
)  # sizes of shingles: words and pairs of words (statements are short), runs of five tokens
LEAD = re.compile(r"^\s*write (?:a|the) (?:python )?function (?:to|that|which) ")
WORD = re.compile(r"\w+|[<>=+*/%^&|!]+|(?<![a-z])-|-(?![a-z])")
FILLERS = frozenset(
    re.findall(
        r"\w+",
        "a an the of for to in is are be by on with and that this which it its from as given function python write find return returns calculate "
        "compute create implement program method using use please your you",
    )
)
TELLING = 16  # characters: `[[2]] -> True` says nothing, for half of all problems agree with it
MANY = 20_000
MOST_TEST = 300_000  # characters of a test's source that are parsed


def squeezed(statement: str) -> str:
    """The statement without case and layout; signs stay, for they are often all that differs (`<`, `>`)."""
    return " ".join(folded(statement).lower().split())


def words(statement: str) -> list[str]:
    """Lower-case words, numbers and signs of a statement, without "Write a function to", which half of MBPP shares."""
    return WORD.findall(LEAD.sub("", folded(statement).lower()))


def programs(problem: Problem) -> list[str]:
    """The solutions, less the starter code that they begin with where something that can be run is left."""
    starter = problem.starter_code
    rests = [
        solution[len(starter) :] if starter and solution.startswith(starter) else ""
        for solution in problem.solutions
    ]
    return [
        rest if re.search(r"^(?:class|def) ", rest, re.MULTILINE) else whole
        for rest, whole in zip(rests, problem.solutions, strict=True)
    ]


def tests(problem: Problem) -> list[str]:
    """What each test asks and expects, as a text: the same whether it is a call or an assertion, whatever the function's name, tuples as lists."""
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
        case _:
            return [
                text
                for test in problem.tests
                for text in _assertions(test["source"], problem.entry_point)
            ]


@dataclass(frozen=True)
class Traits:
    """What is compared of one problem; worked out when it is first asked for."""

    problem: Problem

    @cached_property
    def words(self) -> list[str]:
        return words(self.problem.statement)

    @cached_property
    def telling_words(self) -> list[str]:
        """Those that say what is asked for, in their order: "camel case to snake case" is not "snake case to camel case"."""
        return [word.removesuffix("s") for word in self.words if word not in FILLERS]

    @cached_property
    def statement(self) -> Hashes:
        return shingles(self.words, WORDS)

    @cached_property
    def programs(self) -> list[tuple[str, int, Hashes]]:
        """Shape, number of tokens and shingles of each solution."""
        found = []
        for source in programs(self.problem):
            tokens = code_tokens(source)
            found.append((shape(source), len(tokens), shingles(tokens, CODE)))
        return found

    @cached_property
    def tests(self) -> frozenset[str]:
        """The telling ones."""
        return frozenset(test for test in tests(self.problem) if len(test) >= TELLING)


class Kin(NamedTuple):
    """Two problems compared; shares are in [0, 1]."""

    statement: float  # Jaccard similarity of words and pairs of words
    same_words: bool  # the same telling words in the same order, at least three
    length: int  # words of the shorter statement
    program: float  # the highest Jaccard similarity of a solution of the one with one of the other, names aside
    same_program: bool
    size: int  # tokens of the smaller program of the pair that is most alike
    tests: float  # share of the smaller set of telling tests that is in the other
    shared_tests: int


def kin(one: Traits, other: Traits) -> Kin:
    """Two problems compared exactly; the order does not matter."""
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


@dataclass(frozen=True)
class Sketch:
    """Of n problems with m solutions and k telling tests: what finds those alike without comparing each with each."""

    statements: Signatures  # (n, permutations)
    programs: Signatures  # (m, permutations)
    program_of: NDArray[np.int64]  # (m,): the row of the problem
    shapes: Hashes  # (m,), or empty
    tests: Hashes  # (k,), or empty
    test_of: NDArray[np.int64]  # (k,)

    def take(self, places: Sequence[int]) -> Sketch:
        """Of the problems at these places, in this order; without shapes and tests."""
        at, place = np.array(places, np.int64), np.full(len(self.statements), -1)
        place[at] = np.arange(len(at))
        owner = place[self.program_of]
        rows = np.argsort(owner, kind="stable")[np.count_nonzero(owner < 0) :]
        nothing = np.empty(0, np.uint64)
        return Sketch(
            self.statements[at],
            self.programs[rows],
            owner[rows],
            nothing,
            nothing,
            np.empty(0, np.int64),
        )


def sketch(problems: Sequence[Problem], processes: int = 1, *, exact: bool = True) -> Sketch:
    """The sketch of all problems, in their order; `exact`: with shapes and tests. The processes begin where they pay, from MANY problems on."""
    parts = [problems[at : at + CHUNK] for at in range(0, len(problems), CHUNK)]
    return joined(
        spread(partial(_sketch, exact=exact), parts, processes if len(problems) >= MANY else 1),
        *sizes(problems),
    )


def sizes(problems: Sequence[Problem]) -> tuple[int, int]:
    """Problems and solutions: how many rows a sketch of them has."""
    return len(problems), sum(len(problem.solutions) for problem in problems)


def joined(parts: Iterable[Sketch], count: int, programs: int) -> Sketch:
    """One sketch of all, in their order. The signatures, half a KiB a row, go to where they stay as they come: a million fit no memory twice."""
    statements, shaped = (
        np.empty((count, PERMUTATIONS), np.uint32),
        np.empty((programs, PERMUTATIONS), np.uint32),
    )
    program_of, test_of = np.empty(programs, np.int64), [np.empty(0, np.int64)]
    shapes, asked = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
    row = program = 0
    for part in parts:
        ends = row + len(part.statements), program + len(part.programs)
        statements[row : ends[0]], shaped[program : ends[1]], program_of[program : ends[1]] = (
            part.statements,
            part.programs,
            part.program_of + row,
        )
        shapes.append(part.shapes)
        asked.append(part.tests)
        test_of.append(part.test_of + row)
        row, program = ends
    return Sketch(
        statements,
        shaped,
        program_of,
        np.concatenate(shapes),
        np.concatenate(asked),
        np.concatenate(test_of),
    )


def key(text: str) -> int:
    """64 bits of a text."""
    return int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest())


def _sketch(part: Sequence[Problem], exact: bool) -> Sketch:
    sources = [(row, source) for row, problem in enumerate(part) for source in programs(problem)]
    asked = (
        [
            (row, test)
            for row, problem in enumerate(part)
            for test in set(tests(problem))
            if len(test) >= TELLING
        ]
        if exact
        else []
    )
    return Sketch(
        signatures(shingles(words(problem.statement), WORDS) for problem in part),
        signatures(shingles(code_tokens(source), CODE) for _, source in sources),
        np.array([row for row, _ in sources], np.int64),
        np.array([key(shape(source)) for _, source in sources] if exact else [], np.uint64),
        np.array([key(test) for _, test in asked], np.uint64),
        np.array([row for row, _ in asked], np.int64),
    )


def _claim(arguments: object, expected: object) -> str:
    """The same for lists and tuples, which JSON does not tell apart."""
    text = f"{literal(arguments)} -> {literal(sorted(expected, key=literal) if isinstance(expected, (set, frozenset)) else expected)}"
    return text.translate(FLAT).replace(",]", "]")


FLAT = str.maketrans("()", "[]")


def _assertions(source: str, entry_point: str | None) -> Iterator[str]:
    """The assertions of a test that speak of nothing but the function under test, literals and builtins; what hangs on a variable is left out."""
    if len(source) > MOST_TEST:
        return
    try:
        tree = parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            text = _assertion(node.test, {"candidate", entry_point})
            if text is not None:
                yield text


def _assertion(test: ast.expr, names: set[str | None]) -> str | None:
    asked: ast.expr = test
    wanted: ast.expr = ast.Constant(value=True)
    if (
        isinstance(test, ast.Compare)
        and len(test.ops) == 1
        and isinstance(test.ops[0], (ast.Eq, ast.Is))
    ):
        asked, wanted = sorted(
            (test.left, test.comparators[0]), key=lambda side: not isinstance(side, ast.Call)
        )
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        asked, wanted = test.operand, ast.Constant(value=False)
    if isinstance(asked, ast.Call) and isinstance(asked.func, ast.Name) and asked.func.id in names:
        try:
            arguments = [
                ast.literal_eval(argument)
                for argument in [*asked.args, *(word.value for word in asked.keywords)]
            ]
            return _claim(arguments, ast.literal_eval(wanted))
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            pass  # more than literals
    for node in ast.walk(test):
        if isinstance(node, ast.Name):
            if node.id not in names | SPOKEN:
                return None
            node.id = "candidate" if node.id in names else node.id
    return ast.unparse(test)
