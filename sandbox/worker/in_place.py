"""Decides whether a test looks at what a call changed in its arguments.

A function may change its argument and also return a value: `k = candidate(nums)`, then `assert
nums[:k] == [1, 2]`. But a test that computes its expected value from the argument after the call
(`candidate(xs) == sum(xs)`) must not see the change, or a program that empties the argument would
pass.
A problem can declare which of the two it means (`Job.in_place`). Otherwise the source decides. A
test is about changed arguments if it only names literals, calls the function with them, and
compares results and arguments with literals. No program can alter what such a test expects.
A call that returns None shows its changes if the test uses no result: it is then about effects.
"""

from __future__ import annotations

import ast
from functools import lru_cache

from sandbox.worker.literal import is_short

COPIES = {"sorted", "list", "tuple", "set", "len", "sum", "min", "max"}


@lru_cache(maxsize=256)
def sees_changes(source: str, entry_point: str) -> bool:
    """Whether this test, which defines `check(candidate)`, compares changed arguments with literals
    and does nothing else.
    """
    if not is_short(source):
        return False
    try:
        [check] = [
            node
            for node in ast.parse(source).body
            if isinstance(node, ast.FunctionDef) and node.name == "check"
        ]
        [candidate] = check.args.args
        return _Reading({candidate.arg, entry_point}).reads(check.body)
    except (_MoreThanLiterals, SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return False


@lru_cache(maxsize=256)
def is_about_effects(source: str, entry_point: str) -> bool:
    """Whether this test calls the function, also by another name, and each call is a statement of
    its own or is compared with None. True for a test that cannot be read.
    """
    if not is_short(source):
        return True
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    names = {entry_point}
    effects = set[ast.expr]()
    for node in nodes:
        if isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Expr):
            effects.add(node.value)
        elif isinstance(node, ast.Compare) and _is_none(node.comparators[0]):
            effects.add(node.left)
    calls = {
        node
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names
    }
    return bool(calls) and calls <= effects


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


class _MoreThanLiterals(Exception):
    """The test does something else."""


class _Reading:
    """One pass over the statements of a test."""

    def __init__(self, functions: set[str]) -> None:
        self.functions = functions
        self.literals: dict[str, bool] = {}  # names of literals: whether the value can be changed
        self.results: set[str] = set()  # names of the results of calls
        # Those that were compared with a literal; they may be the end of a slice.
        self.known: set[str] = set()
        self.given: set[str] = set()  # names that were an argument
        self.seen = False  # a changed argument was compared

    def reads(self, body: list[ast.stmt]) -> bool:
        """Read the statements of a test. Raises _MoreThanLiterals."""
        for statement in body:
            if isinstance(statement, ast.Assign):
                self._bind(statement)
            elif isinstance(statement, ast.Expr):
                if not isinstance(statement.value, ast.Constant):
                    self._call(statement.value)
            elif isinstance(statement, ast.Assert):
                both = isinstance(statement.test, ast.BoolOp) and isinstance(
                    statement.test.op, ast.And
                )
                for test in statement.test.values if both else [statement.test]:  # type: ignore[attr-defined]
                    self._compare(test)
            elif not isinstance(statement, ast.Pass):
                raise _MoreThanLiterals
        return self.seen

    def _bind(self, statement: ast.Assign) -> None:
        [target] = statement.targets
        if (
            not isinstance(target, ast.Name)
            or target.id in self.literals.keys() | self.results | self.functions
        ):
            raise _MoreThanLiterals
        if isinstance(statement.value, ast.Call):
            self._call(statement.value)
            self.results.add(target.id)
        else:
            self.literals[target.id] = isinstance(_literal(statement.value), (list, dict, set))

    def _call(self, call: ast.expr) -> None:
        """Read a call of the function with literals and names of literals."""
        if (
            not isinstance(call, ast.Call)
            or not isinstance(call.func, ast.Name)
            or call.func.id not in self.functions
        ):
            raise _MoreThanLiterals
        for value in [*call.args, *(keyword.value for keyword in call.keywords)]:
            if not isinstance(value, ast.Name):
                _literal(value)
            elif value.id in self.literals:
                self.given.add(value.id)
            else:
                raise _MoreThanLiterals

    def _compare(self, test: ast.expr) -> None:
        """Read a comparison of a result or an argument with a literal."""
        if (
            not isinstance(test, ast.Compare)
            or len(test.ops) != 1
            or not isinstance(test.ops[0], (ast.Eq, ast.Is))
        ):
            raise _MoreThanLiterals
        left, right = test.left, test.comparators[0]
        if (
            isinstance(left, ast.Name)
            and isinstance(right, ast.Name)
            and isinstance(test.ops[0], ast.Is)
        ):
            # whether the result is the argument
            if {left.id, right.id} <= self.results | self.given:
                self.seen = True
                return
            raise _MoreThanLiterals
        compared, expected = (right, left) if _is_literal(left) else (left, right)
        _literal(expected)
        if (
            isinstance(compared, ast.Call)
            and isinstance(compared.func, ast.Name)
            and compared.func.id in self.functions
        ):
            self._call(compared)
        elif isinstance(compared, ast.Name) and compared.id in self.results:
            self.known.add(compared.id)
        else:
            self._look(compared)

    def _look(self, value: ast.expr) -> None:
        """Read a look at an argument, an item or slice of it, or a copy of these."""
        while not isinstance(value, ast.Name):
            if (
                isinstance(value, ast.Call)
                and isinstance(value.func, ast.Name)
                and value.func.id in COPIES
                and not value.keywords
            ):
                [value] = value.args
            elif isinstance(value, ast.Subscript):
                self._index(value.slice)
                value = value.value
            else:
                raise _MoreThanLiterals
        if not self.literals.get(value.id) or value.id not in self.given:
            raise _MoreThanLiterals
        self.seen = True

    def _index(self, index: ast.expr) -> None:
        """Read an index: a literal, or `:k` if the test has fixed the value of k."""
        if not isinstance(index, ast.Slice):
            _literal(index)
            return
        for bound in (index.lower, index.upper, index.step):
            if bound is not None and not (
                bound is index.upper and isinstance(bound, ast.Name) and bound.id in self.known
            ):
                _literal(bound)


def _literal(node: ast.expr) -> object:
    """Return the value of a literal. Raises ValueError, TypeError, RecursionError."""
    return ast.literal_eval(node)


def _is_literal(node: ast.expr) -> bool:
    try:
        _literal(node)
    except (ValueError, TypeError, RecursionError):
        return False
    return True
