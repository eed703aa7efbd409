"""Faults of a problem that its text shows, before anything runs.

Tests that contradict each other are passed by programs with a memory alone, and a reference that is
a table of the tests shows nothing but that the tests can be written twice.
"""

from __future__ import annotations

import ast
import calendar
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from problems.schema import Problem
from problems.syntax import tree_of
from sandbox.wire import encode
from sandbox.worker.compare import same_output, same_text

CONTRADICTION = "its tests contradict each other"
TABLE = "the reference is a table of its tests"
MAX_LISTS = 30  # of a program that are compared with each other
# Names that a statement need not list: a program for days or months has a table of them.
NAMES = {
    name.lower()
    for names in (calendar.day_name, calendar.day_abbr, calendar.month_name, calendar.month_abbr)
    for name in names
    if name
}
MIN_KEYS = 2  # a program that tells one input from all others is no table


class PlainCase(NamedTuple):
    """A test that names its input and result as plain values."""

    given: tuple[Any, ...]
    expected: Any


def plain_fault(problem: Problem) -> tuple[str, str] | None:
    """Return reason and detail of a fault that tests and solutions show, else None."""
    cases = list(plain_cases(problem))
    first: dict[str, PlainCase] = {}
    for case in cases if problem.checker is None else ():
        before = first.setdefault(repr(case.given), case)
        if not _same(problem, before.expected, case.expected):
            shown = f"{before.expected!r:.80} and {case.expected!r:.80} for {case.given!r:.80}"
            return CONTRADICTION, shown
    keys = {repr(case.given) for case in cases}
    if len(cases) == len(problem.tests) and len(keys) >= MIN_KEYS and problem.solutions:
        inputs = [_spellings(problem, case.given) for case in cases]
        expected = [_spellings(problem, (case.expected,)) for case in cases]
        if all(
            _is_table(solution, inputs, problem.statement)
            or _is_listed(solution, list(zip(inputs, expected, strict=True)), problem.statement)
            for solution in problem.solutions
        ):
            return TABLE, f"it has an entry for each of {len(keys)} inputs"
    return None


def plain_cases(problem: Problem) -> Iterator[PlainCase]:
    """Yield the tests whose input and result are plain values."""
    for test in problem.tests:
        if problem.style == "stdio":
            yield PlainCase((test["stdin"],), test["stdout"])
        elif problem.style == "call":
            keywords = tuple(sorted((test.get("kwargs") or {}).items()))
            yield PlainCase((*test["args"], *keywords), test["expected"])
        elif problem.style == "assert" and (case := _of_assert(test["source"])):
            yield case


def _of_assert(source: str) -> PlainCase | None:
    """Return the case of a test whose only assert is `candidate(values) == value`, else None."""
    tree = tree_of(source)
    asserts = [node for node in ast.walk(tree) if isinstance(node, ast.Assert)] if tree else []
    match [node.test for node in asserts]:
        case [
            ast.Compare(
                left=ast.Call(func=ast.Name(id="candidate"), args=args, keywords=[]),
                ops=[ast.Eq()],
                comparators=[expected],
            )
        ]:
            try:
                given = tuple(ast.literal_eval(each) for each in args)
                return PlainCase(given, ast.literal_eval(expected))
            except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                return None  # an expression, not a value
    return None


def _same(problem: Problem, one: Any, other: Any) -> bool:
    if problem.style == "stdio":
        return same_output(one.encode(), other.encode(), problem.tolerance, problem.compare)
    return same_text(
        encode(one).encode(), encode(other).encode(), problem.tolerance, problem.compare
    )


def _spellings(problem: Problem, given: tuple[Any, ...]) -> set[str]:
    """Return how a program may write the input as one value."""
    if problem.style != "stdio":
        return {repr(given), repr(given[0])} if len(given) == 1 else {repr(given)}
    text = str(given[0])
    return {repr(text), repr(text.strip()), repr(text.split()), text.strip()}


def _is_table(solution: str, inputs: list[set[str]], statement: str) -> bool:
    """Return whether a program names each input, no other, and not only those of the statement.

    Of a function that does nothing with its arguments but compare them, one input may be the rest.
    """
    if (tree := tree_of(solution)) is None:
        return False
    keys = {repr(key) for key in _keys(tree)}
    known = set[str]().union(*inputs)
    missing = sum(not keys & each for each in inputs)
    named = missing == 0 or (missing == 1 and len(keys) >= MIN_KEYS and _only_compares(tree))
    return bool(keys) and keys <= known and named and not _told(keys, statement)


def _told(keys: Iterable[str], statement: str) -> bool:
    """Return whether the inputs of a table are words of the statement, or names of the calendar."""
    words = {key.strip("'\"").lower() for key in keys}
    return words <= NAMES or all(word in statement.lower() for word in words)


def _only_compares(tree: ast.Module) -> bool:
    """Return whether every use of an argument is a comparison of itself."""
    arguments = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    uses, compared = list[ast.AST](), list[ast.AST]()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) if name in arguments:
                uses.append(node)
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
                compared += [left, right]
            case ast.Match(subject=subject):
                compared.append(subject)
    return bool(uses) and all(use in compared for use in uses)


def _is_listed(solution: str, cases: list[tuple[set[str], set[str]]], statement: str) -> bool:
    """Return whether a program lists each input with its result, as pairs or in two lists, no other
    input, and not only those of the statement.
    """
    tree = tree_of(solution)
    values = list(map(_value, ast.walk(tree))) if tree else []
    lists = [value for value in values if isinstance(value, list | tuple)]
    lists = [each for each in lists if len(each) >= MIN_KEYS][:MAX_LISTS]
    pairs: list[Any] = [[*zip(one, other, strict=False)] for one in lists for other in lists]
    pairs += [each for each in lists if all(isinstance(p, list | tuple) for p in each)]
    tables = [{repr(p[0]): repr(p[1]) for p in each if len(p) == 2} for each in pairs]
    known = set[str]().union(*(inputs for inputs, _ in cases))
    return any(
        table.keys() <= known
        and not _told(table, statement)
        and all(any(table.get(key) in results for key in inputs) for inputs, results in cases)
        for table in tables
    )


def _value(node: ast.AST) -> Any:
    """Return the value of a list or tuple of literals; None for any other node."""
    try:
        return ast.literal_eval(node) if isinstance(node, ast.List | ast.Tuple) else None
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _keys(tree: ast.AST) -> Iterator[Any]:
    """Yield the plain values that a program tells inputs apart by, but not their parts, and no
    plain result.
    """
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        results: list[ast.expr] = []
        match node:
            case ast.Dict(keys=keys, values=results):
                told_apart = [key for key in keys if key]
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
                told_apart = [left, right]
            case ast.MatchValue(value=value):
                told_apart = [value]
            case ast.Return(value=ast.expr() as result):
                told_apart, results = [], [result]
            case _:
                waiting += ast.iter_child_nodes(node)
                continue
        for part in (*told_apart, *results):
            try:
                literal = ast.literal_eval(part)
            except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                waiting.append(part)
            else:
                if part in told_apart:
                    yield literal
