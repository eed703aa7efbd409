"""Decoys: variants of a unittest that no real solution passes. A program that shares the
interpreter with its tests can forge a pass; it then forges a pass of the decoys too.

Each decoy changes one statement so that what held no longer holds. The best decoys look like tests:
they expect another value (sandbox/decoys/variants.py). Only a program that knows the answer can
tell them from the test itself, and one that reads the expected value from the test returns the
wrong value.
Statements that a run may not reach (under if or except, after a return, in functions) are left
alone: a passing decoy must be proof. No decoy makes more calls than the test, or it would take
longer.

Each method runs on its own, in a fresh process, as do its decoys; otherwise a method could change
the ones after it.
"""

from __future__ import annotations

import ast
import builtins
import copy
import re
import zlib
from collections.abc import Iterator
from typing import Any

from sandbox.decoys.mutate_expected import SECRET, otherwise
from sandbox.decoys.variants import (
    COMPARED,
    asserts,
    is_literal,
    of_call,
    of_test,
    raising,
    wrapped,
)

MOST = 8  # decoys per method: each is a run
LIKE_TESTS = 6  # of these at most, if there are others
ENOUGH = 3  # with fewer such decoys, one more is made up
NO_SUBJECTS = {*vars(builtins), "patch", "MagicMock", "Mock"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
OPAQUE = (*FUNCTIONS, ast.Lambda, ast.ClassDef)
# contexts that may swallow a failure
SWALLOWS = ("aises", "suppress", "assertLogs", "assertWarns", "assertNoLogs")

# in a statement about a type or an exception
GUESSABLE = re.compile("[iI]s_?[iI]nstance|[rR]aises")

Function = ast.FunctionDef | ast.AsyncFunctionDef
Path = tuple[int, ...]  # indices to a statement: in a body, in the body of the statement there, ...
Places = frozenset[tuple[int, int]]  # class index and method index of test methods
Variants = tuple[list[ast.stmt], list[ast.stmt]]  # variants that look like tests, and others


def find_test_methods(tree: ast.Module) -> list[tuple[str, int, int]]:
    """Return name, class index and method index of each test method. Of two with one name the last
    counts, as in Python.
    """
    places = {}
    for c, kind in enumerate(tree.body):
        for m, part in enumerate(kind.body if isinstance(kind, ast.ClassDef) else ()):
            if is_test(part):
                places[f"{kind.name}.{part.name}"] = c, m  # type: ignore[attr-defined]
    return [(name, c, m) for name, (c, m) in sorted(places.items(), key=lambda item: item[1])]


def is_test(part: ast.stmt) -> bool:
    return (
        isinstance(part, FUNCTIONS)
        and part.name.startswith("test")
        and "skip" not in [_name(by) for by in part.decorator_list]
    )


def proves_nothing(tree: ast.Module, c: int, m: int) -> bool:
    """Whether this method may pass although its assertions fail, or is never awaited; a passing
    decoy then proves nothing.
    """
    kind: Any = tree.body[c]
    if isinstance(kind.body[m], ast.AsyncFunctionDef) and all(
        ast.unparse(base).rpartition(".")[2] == "TestCase" for base in kind.bases
    ):
        return True
    return "expectedFailure" in [
        _name(by) for by in (*kind.body[m].decorator_list, *kind.decorator_list)
    ]


def _name(decorator: ast.expr) -> str:
    return ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator).rpartition(
        "."
    )[2]


def alone(tree: ast.Module, c: int, m: int, others: Places = frozenset()) -> ast.Module:
    """Return the module with this test method only, or with others beside it."""
    return _changed(tree, c, m, others=others)


def decoys(
    tree: ast.Module,
    c: int,
    m: int,
    *,
    only_values: bool = False,
    others: Places = frozenset(),
) -> list[ast.Module]:
    """Return variants of the module with this method only, the best first.

    others: test methods that stay beside it.
    only_values: whether to leave out all but those that expect another value: a program can
        recognize the others by their form, or by a type or an exception that the statement names.
    """
    kind: Any = tree.body[c]
    method: Function = kind.body[m]
    like_tests: list[tuple[Path, ast.stmt]] = []
    plain: list[tuple[Path, ast.stmt]] = []
    for at in (m, *_helpers(kind, method)):
        for path, part, after in _reached(kind.body[at].body):
            natural, recognizable = _in_place_of(part, kind.body[at], after)
            like_tests += [((at, *path), variant) for variant in natural]
            plain += [((at, *path), variant) for variant in recognizable]
    if only_values:
        like_tests = [each for each in like_tests if not GUESSABLE.search(ast.unparse(each[1]))]
    variants = [
        _changed(tree, c, m, path, by, others) for path, by in _spread(like_tests, LIKE_TESTS)
    ]
    if only_values:
        return variants
    if len(variants) < ENOUGH and not _may_leave(method.body):
        path, by = _made_up(method)
        variants.append(_changed(tree, c, m, (m, *path), by, others))
    return variants + [
        _changed(tree, c, m, path, by, others) for path, by in _spread(plain, MOST - len(variants))
    ]


def _helpers(kind: ast.ClassDef, method: Function) -> list[int]:
    """Return the methods that this one calls in every run and that are not tests themselves."""
    called = set()
    for _, part, _ in _reached(method.body):
        call = part.value if isinstance(part, (ast.Expr, ast.Assign)) else None
        if (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and ast.unparse(call.func.value) == "self"
        ):
            called.add(call.func.attr)
    return [
        at
        for at, part in enumerate(kind.body)
        if isinstance(part, FUNCTIONS) and part.name in called and not is_test(part)
    ]


def _spread(places: list[Any], most: int) -> list[Any]:
    """Return at most this many of them, drawn at random."""
    return places if len(places) <= most else SECRET.sample(places, most)


def _made_up(method: Function) -> tuple[Path, ast.stmt]:
    """Make up an assertion that something the program has just returned equals a number, which it
    will not.
    """
    number = ast.Constant(
        10007 + zlib.crc32(ast.unparse(method).encode("utf-8", "replace")) % 80000
    )
    path: Path = (len(method.body),)
    subject: ast.expr | None = None
    for where, part, _ in _reached(method.body):
        calls = [
            node
            for node in ast.walk(part)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id not in NO_SUBJECTS
        ]
        if (
            isinstance(part, ast.Assign)
            and part.value in calls
            and isinstance(part.targets[0], ast.Name)
            and len(where) == 1
        ):
            path, subject = (len(method.body),), ast.Name(part.targets[0].id, ast.Load())
        elif isinstance(part, ast.Expr) and calls and subject is None:
            path, subject = where, calls[0]
    itself = ast.Name(method.args.args[0].arg if method.args.args else "self", ast.Load())
    return path, ast.Expr(
        ast.Call(
            ast.Attribute(itself, "assertEqual", ast.Load()),
            [subject or ast.Constant(method.name), number],
            [],
        )
    )


def _changed(
    tree: ast.Module,
    c: int,
    m: int,
    path: Path = (),
    by: ast.stmt | None = None,
    others: Places = frozenset(),
) -> ast.Module:
    """Return a copy with only this test method and these others. At this path in its class, the
    statement is replaced or one is added. Only what changes is copied.
    """
    kept = {(c, m), *others}
    kind: Any = copy.copy(tree.body[c])
    kind.body = list(kind.body)
    part = kind
    for step in path[:-1]:
        part.body[step] = copy.copy(part.body[step])
        part = part.body[step]
        part.body = list(part.body)
    if by is not None:
        part.body[path[-1] : path[-1] + 1] = [by]
    body = [kind if at == c else part for at, part in enumerate(tree.body)]
    return ast.Module([_with_tests(part, at, kept) for at, part in enumerate(body)], [])


def _with_tests(part: ast.stmt, c: int, kept: set[tuple[int, int]]) -> ast.stmt:
    """Remove the other tests of a class but keep the class: another may inherit from it."""
    if isinstance(part, ast.ClassDef) and any(map(is_test, part.body)):
        part = copy.copy(part)
        part.body = [
            statement
            for m, statement in enumerate(part.body)
            if (c, m) in kept or not is_test(statement)
        ] or [ast.Pass()]
    return part


def _reached(
    body: list[ast.stmt], path: Path = ()
) -> Iterator[tuple[Path, ast.stmt, list[ast.stmt]]]:
    """Yield the statements that every run reaches, each with those after it in the same body."""
    for at, part in enumerate(body):
        yield (*path, at), part, body[at + 1 :]
        if _is_open(part):
            yield from _reached(part.body, (*path, at))  # type: ignore[attr-defined]
        if _may_leave([part]):
            return


def _is_open(part: ast.stmt) -> bool:
    """Whether the first statement inside this one is always reached, and a failure there is not
    swallowed.
    """
    if isinstance(part, (ast.With, ast.AsyncWith)):
        return not any(
            word in ast.unparse(item.context_expr) for item in part.items for word in SWALLOWS
        )
    if isinstance(part, ast.For):
        return isinstance(part.iter, (ast.List, ast.Tuple)) and any(
            not isinstance(item, ast.Starred) for item in part.iter.elts
        )
    return isinstance(part, ast.Try) and not part.handlers


def _may_leave(body: list[ast.stmt]) -> bool:
    """Whether the statements after these may be skipped although the test passes."""
    pending: list[ast.AST] = list(body)
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.Return, ast.Raise, ast.Continue, ast.Break)) or (
            isinstance(node, ast.Attribute) and node.attr == "skipTest"
        ):
            return True
        if not isinstance(node, OPAQUE):
            pending += ast.iter_child_nodes(node)
    return False


def _in_place_of(part: ast.stmt, method: Function, after: list[ast.stmt]) -> Variants:
    """Return what may replace a statement that is always reached."""
    if (
        isinstance(part, (ast.With, ast.AsyncWith))
        and len(part.items) == 1
        and asserts(part.items[0].context_expr) == "assertRaises"
    ):
        return [_with_context(part, other) for other in raising(part.items[0].context_expr)], []
    if isinstance(part, ast.For) and _is_open(part) and not _may_leave(part.body):
        return [
            ast.For(part.target, rows, part.body, part.orelse, lineno=0)
            for rows in _rows_otherwise(method, part)
        ], []
    if isinstance(part, ast.Expr) and isinstance(part.value, ast.Call):
        natural, plain = of_call(part.value)
        return [ast.Expr(call) for call in natural], [ast.Expr(call) for call in plain]
    if isinstance(part, ast.Assert):
        natural_tests, plain_tests = of_test(part.test)
        return [ast.Assert(test) for test in natural_tests], [
            ast.Assert(test) for test in plain_tests
        ]
    name = part.targets[0] if isinstance(part, ast.Assign) and len(part.targets) == 1 else None
    if (
        isinstance(part, ast.Assign)
        and isinstance(name, ast.Name)
        and is_compared(method, after, name.id)
    ):
        other = otherwise(part.value)
        change: ast.stmt = ast.Assign(part.targets, other or wrapped(part.value), lineno=0)
        return ([change], []) if other else ([], [change])
    return [], []


def _with_context(part: ast.With | ast.AsyncWith, context: ast.expr) -> ast.stmt:
    other = copy.copy(part)
    other.items = [ast.withitem(context, part.items[0].optional_vars)]
    return other


def _rows_otherwise(method: Function, loop: ast.For) -> list[ast.expr]:
    """Return variants of a loop's table, with another value in a column that is only compared."""
    variants = []
    for column, target in enumerate(loop.target.elts if isinstance(loop.target, ast.Tuple) else ()):
        if not isinstance(target, ast.Name) or not is_compared(method, loop.body, target.id):
            continue
        table: Any = copy.deepcopy(loop.iter)
        row = table.elts[len(table.elts) // 2]
        if (
            isinstance(row, (ast.Tuple, ast.List))
            and is_literal(row)
            and len(row.elts) > column
            and (other := otherwise(row.elts[column]))
        ):
            row.elts[column] = other
            variants.append(table)
    return variants


def is_compared(method: Function, after: list[ast.stmt], name: str) -> bool:
    """Whether a name that is bound once is read only by assertions, as an operand or message, and
    every run reaches an equality with it.
    """
    calls = [
        node.value
        for node in ast.walk(method)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and asserts(node.value)
    ]
    told = [
        part
        for call in calls
        for part in (*call.args[2:], *(keyword.value for keyword in call.keywords))
    ]
    harmless = [side for call in calls for side in call.args[:2]] + [
        node for part in told for node in ast.walk(part)
    ]
    if (
        sum(_named(node, name) for node in ast.walk(method))
        != sum(_named(node, name) for node in harmless) + 1
    ):
        return False
    for statement in after:
        call = statement.value if isinstance(statement, ast.Expr) else None
        if (
            isinstance(call, ast.Call)
            and asserts(call) in COMPARED
            and [_named(side, name) for side in call.args[:2]].count(True) == 1
        ):
            return True
        if _may_leave([statement]):
            return False
    return False


def _named(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
