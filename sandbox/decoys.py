"""Decoys: variants of a unittest that no real solution passes. A program that shares the interpreter with its tests can forge a pass; it then forges
this one too.

Each decoy changes one assertion so that what held no longer holds: the opposite assertion, or one operand wrapped in a list, which equals nothing it
equalled before. A cheat that switches assertions off passes the opposite; an object that equals everything passes the wrapped one; one that ends the
run early, or writes the result itself, passes the last decoy, whose method ends in an error. Assertions that a run may not reach (under if, for,
except, in functions) are left out: a decoy that passes must be proof.

Each method is run by itself, in a fresh process, like its decoys: or a method could change the ones after it.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from typing import Any

MOST = 8  # decoys a method: each is a run
OPPOSITE = {
    "assertEqual": "assertNotEqual", "assertTrue": "assertFalse", "assertIn": "assertNotIn", "assertIs": "assertIsNot",
    "assertIsNone": "assertIsNotNone", "assertIsInstance": "assertNotIsInstance", "assertGreater": "assertLessEqual",
    "assertLess": "assertGreaterEqual", "assertRegex": "assertNotRegex",
    "assertAlmostEqual": "assertNotAlmostEqual", "assert_called": "assert_not_called",
}  # fmt: skip
OPPOSITE |= {opposite: name for name, opposite in OPPOSITE.items()} | {"assert_called_once": "assert_not_called"}
WRAPPED = {"assertEqual", "assertListEqual", "assertDictEqual", "assertTupleEqual", "assertSetEqual", "assertAlmostEqual", "assertCountEqual"}
CALLED_WITH = {"assert_called_with", "assert_called_once_with", "assert_any_call"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def methods_and_decoys(source: str) -> list[list[str]]:
    """For each test method the text with this method alone, then its decoys. Raises SyntaxError and its kin on a text that is no Python."""
    tree = ast.parse(source)
    methods = [(c, m) for c, kind in enumerate(tree.body) if isinstance(kind, ast.ClassDef) for m, part in enumerate(kind.body) if _is_test(part)]
    return [
        [ast.unparse(ast.fix_missing_locations(made)) for made in (_changed(tree, c, m, lambda _: None), *_decoys(tree, c, m))] for c, m in methods
    ]


def _decoys(tree: ast.Module, c: int, m: int) -> list[ast.Module]:
    ends_in_error = _changed(tree, c, m, lambda method: method.body.append(ast.parse("raise AssertionError").body[0]))
    method = tree.body[c].body[m]  # type: ignore[attr-defined]
    made = [_replaced(tree, c, m, path, variant) for path, variants in _sites(method.body, ()) for variant in variants]
    if len(made) >= MOST:  # spread over the text
        made = [made[at * len(made) // (MOST - 1)] for at in range(MOST - 1)]
    return [ends_in_error, *made]


def _is_test(part: ast.stmt) -> bool:
    return isinstance(part, FUNCTIONS) and part.name.startswith("test") and not any("skip" in ast.unparse(by) for by in part.decorator_list)


def _changed(tree: ast.Module, c: int, m: int, change: Callable[[Any], None]) -> ast.Module:
    """A copy with this one test method, changed."""
    made = copy.deepcopy(tree)
    kind = made.body[c]
    assert isinstance(kind, ast.ClassDef)
    method = kind.body[m]
    kind.body = [part for part in kind.body if part is method or not _is_test(part)]
    made.body = [part for part in made.body if part is kind or not (isinstance(part, ast.ClassDef) and any(map(_is_test, part.body)))]
    change(method)
    return made


def _replaced(tree: ast.Module, c: int, m: int, path: tuple[int, ...], by: ast.stmt) -> ast.Module:
    def change(method: ast.FunctionDef) -> None:
        body = method.body
        for step in path[:-1]:
            body = body[step].body  # type: ignore[attr-defined]
        body[path[-1]] = by

    return _changed(tree, c, m, change)


def _sites(body: list[ast.stmt], path: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], list[ast.stmt]]]:
    """Where in a method, by index, an assertion stands that every run reaches, and what takes its place."""
    for at, part in enumerate(body):
        if isinstance(part, (ast.With, ast.AsyncWith)):
            raising = any(_asserts(item.context_expr).startswith(("assertRaises", "assertLogs", "assertWarns")) for item in part.items)
            if not raising:  # else what stands after the raising call is not reached
                yield from _sites(part.body, (*path, at))
            elif len(part.items) == 1 and _asserts(part.items[0].context_expr) == "assertRaises":
                other = copy.deepcopy(part)
                other.items[0].context_expr.args[:1] = [ast.Name("StopAsyncIteration", ast.Load())]  # type: ignore[attr-defined]
                yield (*path, at), [other]
        elif isinstance(part, ast.Expr) and isinstance(part.value, ast.Call):
            if variants := list(_variants(part.value)):
                yield (*path, at), [ast.Expr(variant) for variant in variants]
        elif isinstance(part, ast.Assert):
            yield (*path, at), [ast.Assert(test) for test in _opposites(part.test)]
        elif isinstance(part, (ast.Return, ast.Raise)):
            return


def _asserts(call: ast.expr) -> str:
    """The name of the assertion that this calls, or nothing."""
    name = call.func.attr if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else ""
    return name if name.startswith("assert") else ""


def _variants(call: ast.Call) -> Iterator[ast.Call]:
    name = _asserts(call)
    if name in OPPOSITE:
        other = copy.deepcopy(call)
        assert isinstance(other.func, ast.Attribute)
        other.func.attr = OPPOSITE[name]
        yield other
    if name in WRAPPED and len(call.args) >= 2:
        for side in (0, 1):
            other = copy.deepcopy(call)
            other.args[side] = _wrapped(other.args[side])
            yield other
    if name == "assertTrue" and len(call.args) >= 1 and isinstance(call.args[0], ast.Compare):
        for opposite in _opposites(call.args[0])[1:]:
            other = copy.deepcopy(call)
            other.args[0] = opposite
            yield other
    if name in CALLED_WITH:
        other = copy.deepcopy(call)
        other.args += [ast.Constant(0), ast.Constant(0)]
        yield other


def _opposites(test: ast.expr) -> list[ast.expr]:
    """Expressions that are false where this is true; for an equality also with either side wrapped."""
    made: list[ast.expr] = [ast.UnaryOp(ast.Not(), copy.deepcopy(test))]
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
        made += [ast.Compare(_wrapped(test.left), [ast.Eq()], test.comparators), ast.Compare(test.left, [ast.Eq()], [_wrapped(test.comparators[0])])]
    return made


def _wrapped(operand: ast.expr) -> ast.expr:
    return ast.List([copy.deepcopy(operand)], ast.Load())
