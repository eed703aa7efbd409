"""Find the few pairs worth comparing among many problems.

In: problems. Out: a `Sketch`: MinHash signatures of statements and solutions, and hashes of shapes
and tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from problems.cleaning.minhash import (
    CHUNK,
    PERMUTATIONS,
    Hashes,
    Rows,
    Signatures,
    shingles,
    signatures,
)
from problems.cleaning.similarity import CODE, TELLING, WORDS, key, programs, tests, words
from problems.parallel import parallel_map
from problems.schema import Problem
from problems.syntax import code_tokens, shape

MANY = 20_000


@dataclass(frozen=True)
class Sketch:
    """Data to find similar problems among n without comparing all pairs.

    The problems have m solutions and k telling tests.
    """

    statements: Signatures  # (n, permutations)
    programs: Signatures  # (m, permutations)
    program_of: NDArray[np.int64]  # (m,): the row of the problem
    shapes: Hashes  # (m,), or empty
    tests: Hashes  # (k,), or empty
    test_of: NDArray[np.int64]  # (k,)

    def without_exact(self) -> Sketch:
        """Return the signatures alone, without shapes and tests."""
        nothing = np.empty(0, np.uint64)
        return replace(self, shapes=nothing, tests=nothing, test_of=np.empty(0, np.int64))


class Sketched(Protocol):
    """The part of a sketch that finds near duplicates; the signatures may be in files."""

    @property
    def statements(self) -> Signatures | Rows: ...

    @property
    def programs(self) -> Signatures | Rows: ...

    @property
    def program_of(self) -> NDArray[np.int64]: ...


def sketch(problems: Sequence[Problem], processes: int = 1, *, exact: bool = True) -> Sketch:
    """Return the sketch of all problems, in their order; `exact`: with shapes and tests.

    Processes are started from MANY problems on, where they pay off.
    """
    parts = [problems[at : at + CHUNK] for at in range(0, len(problems), CHUNK)]
    return joined(
        parallel_map(
            partial(_sketch, exact=exact), parts, processes if len(problems) >= MANY else 1
        ),
        *sizes(problems),
    )


def sizes(problems: Sequence[Problem]) -> tuple[int, int]:
    """Return the numbers of problems and solutions: the row counts of their sketch."""
    return len(problems), sum(len(problem.solutions) for problem in problems)


def joined(parts: Iterable[Sketch], count: int, programs: int) -> Sketch:
    """Join the parts of a sketch, in their order.

    The signatures (half a KiB per row) are copied into the result as they arrive, so that they are
    in memory once.
    """
    statements, shaped = (
        np.empty((count, PERMUTATIONS), np.uint32),
        np.empty((programs, PERMUTATIONS), np.uint32),
    )
    program_of, test_of = np.empty(programs, np.int64), [np.empty(0, np.int64)]
    shapes, all_tests = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
    row = program = 0
    for part in parts:
        ends = row + len(part.statements), program + len(part.programs)
        statements[row : ends[0]], shaped[program : ends[1]], program_of[program : ends[1]] = (
            part.statements,
            part.programs,
            part.program_of + row,
        )
        shapes.append(part.shapes)
        all_tests.append(part.tests)
        test_of.append(part.test_of + row)
        row, program = ends
    return Sketch(
        statements,
        shaped,
        program_of,
        np.concatenate(shapes),
        np.concatenate(all_tests),
        np.concatenate(test_of),
    )


def _sketch(part: Sequence[Problem], exact: bool) -> Sketch:
    sources = [(row, source) for row, problem in enumerate(part) for source in programs(problem)]
    all_tests = (
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
        np.array([key(test) for _, test in all_tests], np.uint64),
        np.array([row for row, _ in all_tests], np.int64),
    )
