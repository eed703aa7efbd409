"""Estimate the difficulty of a problem without any model.

Counts properties of the statement and of the shortest solution, and combines them in one score.

In: problems. Out: a row of counts per problem, and a score in [0, 1] relative to the others.
`problems/difficulty/difficulty.py` measures the difficulty with a model.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from problems.cleaning.similarity import programs
from problems.schema import Problem
from problems.syntax import tree_of

BRANCHES = (
    ast.If,
    ast.For,
    ast.While,
    ast.AsyncFor,
    ast.IfExp,
    ast.ExceptHandler,
    ast.Assert,
    ast.comprehension,
    ast.match_case,
)
BLOCKS = (
    ast.If,
    ast.For,
    ast.While,
    ast.With,
    ast.Try,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Lambda,
    ast.comprehension,
    ast.Match,
)
# The number of tests is left out: it shows how careful an author was.
SCORED = ("statement_words", "nodes", "branches", "nesting", "operations", "imports")


@dataclass(frozen=True)
class Features:
    """Counts for one problem; those of the solution are None if no solution can be parsed."""

    problem_id: str
    statement_words: int
    tests: int
    lines: int | None = None  # of the solution, without empty lines
    nodes: int | None = None  # of its syntax tree
    # cyclomatic complexity: one, plus one per decision (McCabe 1976)
    branches: int | None = None
    nesting: int | None = None  # depth of nested blocks
    operations: int | None = None  # number of different operators and of different called names
    imports: int | None = None


SCHEMA = pa.schema(
    [
        ("problem_id", pa.string()),
        *((name, pa.int64()) for name in list(Features.__dataclass_fields__)[1:]),
        ("difficulty", pa.float64()),
    ]
)


def features(problem: Problem) -> Features:
    """Count properties of the statement and of the shortest solution that parses.

    A problem is as hard as its simplest known solution.
    """
    words, tests = len(problem.statement.split()), len(problem.tests)
    for source in sorted(programs(problem), key=lambda text: (len(text), text)):
        if (tree := tree_of(source)) is None:
            continue
        return Features(
            problem.problem_id,
            words,
            tests,
            sum(bool(line.strip()) for line in source.splitlines()),
            *_counts(tree),
        )
    return Features(problem.problem_id, words, tests)


def _counts(tree: ast.Module) -> tuple[int, int, int, int, int]:
    """Nodes, branches, nesting, operations, imports."""
    nodes, branches, nesting, imports = 0, 1, 0, 0
    operations: set[str] = set()
    pending: list[tuple[ast.AST, int]] = [(tree, 0)]
    while pending:
        node, depth = pending.pop()
        depth += isinstance(node, BLOCKS)
        nodes, nesting = nodes + 1, max(nesting, depth)
        branches += (
            len(node.values) - 1 if isinstance(node, ast.BoolOp) else isinstance(node, BRANCHES)
        )
        imports += len(node.names) if isinstance(node, ast.Import | ast.ImportFrom) else 0
        if isinstance(node, ast.operator | ast.unaryop | ast.cmpop | ast.boolop | ast.Subscript):
            operations.add(type(node).__name__)
        elif isinstance(node, ast.Call):
            operations.add(
                node.func.attr
                if isinstance(node.func, ast.Attribute)
                else node.func.id
                if isinstance(node.func, ast.Name)
                else "()"
            )
        pending.extend((child, depth) for child in ast.iter_child_nodes(node))
    return nodes, branches, nesting, len(operations), imports


def static_scores(columns: Iterable[NDArray[np.float64]], count: int) -> NDArray[np.float64]:
    """Return a score in [0, 1] for each of `count` problems, hardest near 1.

    It is the mean of the problem's ranks among the others in each of `SCORED`, without counts that
    are None. So it is relative to this set only. Nothing is fitted: `difficulty_rankings` shows how
    well the score agrees with measurements. columns: the counts in the order of SCORED, NaN for
    None; read one at a time.
    """
    total, known = np.zeros(count), np.zeros(count, np.int8)
    for numbers in columns:
        ranks = places(numbers)
        is_known = ~np.isnan(ranks)
        total[is_known] += ranks[is_known]
        known += is_known
    return np.fromiter((round(float(score), 6) for score in total / known), float, count)


def places(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each number's rank among the known ones, from 0 (lowest) to 1 (highest).

    Equal numbers share a rank; NaN, which is unknown, stays.
    """
    known = np.sort(numbers[~np.isnan(numbers)])
    if len(known) < 2:
        return np.where(np.isnan(numbers), np.nan, 0.5)
    middle = (
        np.searchsorted(known, numbers, "left") + np.searchsorted(known, numbers, "right") - 1
    ) / 2
    return np.where(np.isnan(numbers), np.nan, middle / (len(known) - 1))


def spearman(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Return the rank correlation in [-1, 1], or None where it is undefined.

    It is undefined for fewer than three pairs, or if all values on one side are equal.
    """
    a, b = places(np.array(one, float)), places(np.array(other, float))
    if len(a) < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    return float(np.corrcoef(a, b)[0, 1])


def read_difficulty(path: Path) -> dict[str, float]:
    """Read the scores of a dataset, by problem. Raises FileNotFoundError."""
    table = pq.read_table(path, columns=["problem_id", "difficulty"])
    return dict(zip(table["problem_id"].to_pylist(), table["difficulty"].to_pylist(), strict=True))
