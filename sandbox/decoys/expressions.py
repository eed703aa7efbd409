"""Opens the expression of an assertion: answers replace the parts that only the program's process
can compute.
"""

from __future__ import annotations

import ast
from typing import Any

from sandbox.decoys.purity import COMPREHENSIONS, Known

# types whose values keep their type when they are sent
TYPES = {
    "bool",
    "int",
    "float",
    "complex",
    "str",
    "bytes",
    "list",
    "tuple",
    "dict",
    "set",
    "frozenset",
}
THROUGH = ("all", "any", "set", "sum")  # functions that iterate over their argument


OF_TEXTS = {
    "startswith",
    "endswith",
    "isdigit",
    "isalpha",
    "isalnum",
    "isupper",
    "islower",
    "lower",
    "upper",
    "strip",
    "split",
    "count",
    "isspace",
}


def opened_expression(
    test: ast.expr, known: Known, bound: frozenset[str], leaves: list[ast.expr]
) -> ast.expr | None:
    """Return the expression with answers in place of what only the program's process knows; these
    parts are added to `leaves`, in the order of their use. Returns None if it cannot be opened that
    far.
    """
    if known.pure(test, bound):
        return test
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = opened_expression(test.operand, known, bound, leaves)
        return ast.UnaryOp(ast.Not(), inner) if inner else None
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) and not bound:
        parts = [opened_expression(part, known, bound, leaves) for part in test.values]
        return _all_of(parts) if all(parts) else None
    if isinstance(test, ast.Compare) and not any(
        isinstance(op, (ast.Is, ast.IsNot)) for op in test.ops
    ):
        sides = [
            opened_expression(side, known, bound, leaves) for side in (test.left, *test.comparators)
        ]
        return ast.Compare(sides[0], test.ops, sides[1:]) if all(sides) else None  # type: ignore[arg-type]
    if (
        isinstance(test, ast.Call)
        and (called := _opened_call(test, known, bound, leaves)) is not test
    ):
        return called
    if (
        isinstance(test, COMPREHENSIONS)
        and not isinstance(test, ast.DictComp)
        and len(test.generators) == 1
        and not bound
    ):
        rows: ast.expr | None = _opened_rows(test, known, leaves)
        return rows
    return (
        None
        if bound & {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
        else _leaf(test, leaves)
    )


def _opened_call(
    test: ast.Call, known: Known, bound: frozenset[str], leaves: list[ast.expr]
) -> ast.expr | None:
    """Open a call. Returns the call itself if the judge cannot make it."""
    arguments = test.args[1:]
    if test.keywords or (not test.args and not isinstance(test.func, ast.Attribute)):
        return test
    if isinstance(test.func, ast.Name) and (
        test.func.id in THROUGH
        or (test.func.id == "isinstance" and len(arguments) == 1 and is_type(arguments[0]))
    ):
        before = len(leaves)
        inner = opened_expression(test.args[0], known, bound, leaves)
        if test.func.id in THROUGH:
            _list_the_last(inner, leaves, before)
        return (
            ast.Call(test.func, [inner, *arguments], [])
            if inner and all(known.pure(part, bound) for part in arguments)
            else None
        )
    if known.path(test.func) in ("re.match", "re.fullmatch", "re.search"):
        parts = [opened_expression(part, known, bound, leaves) for part in test.args]
        return ast.Call(test.func, parts, []) if all(parts) else None  # type: ignore[arg-type]
    if (
        isinstance(test.func, ast.Attribute)
        and test.func.attr in OF_TEXTS
        and all(known.pure(part, bound) for part in test.args)
    ):
        inner = opened_expression(test.func.value, known, bound, leaves)
        return (
            ast.Call(ast.Attribute(inner, test.func.attr, ast.Load()), test.args, [])
            if inner
            else None
        )
    return test


def _opened_rows(test: Any, known: Known, leaves: list[ast.expr]) -> Any:
    """Open a comprehension over a value of the program whose elements are compared with
    literals.
    """
    generator = test.generators[0]
    inside = frozenset(node.id for node in ast.walk(generator.target) if isinstance(node, ast.Name))
    before = len(leaves)
    iterated = opened_expression(generator.iter, known, frozenset(), leaves)
    _list_the_last(iterated, leaves, before)
    element = opened_expression(test.elt, known, inside, leaves)
    if not iterated or not element or not all(known.pure(part, inside) for part in generator.ifs):
        return None
    return type(test)(element, [ast.comprehension(generator.target, iterated, generator.ifs, 0)])


def _list_the_last(opened: ast.expr | None, leaves: list[ast.expr], before: int) -> None:
    """Send an iterated leaf as the list of its elements: an iterator has no value of its own."""
    if isinstance(opened, ast.Name) and len(leaves) > before:
        leaves[-1] = ast.List([ast.Starred(leaves[-1], ast.Load())], ast.Load())


def _all_of(parts: list[ast.expr | None]) -> ast.expr:
    """Make a conjunction that takes all answers, whichever is the first to fail."""
    return ast.Call(
        ast.Name("all", ast.Load()), [ast.List([part for part in parts if part], ast.Load())], []
    )


def _leaf(test: ast.expr, leaves: list[ast.expr]) -> ast.expr:
    leaves.append(test)
    return ast.Name(answer_name(len(leaves) - 1), ast.Load())


def answer_name(at: int | str) -> str:
    return f"_answer_{at}"


def is_type(kind: ast.expr) -> bool:
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return all(isinstance(part, ast.Name) and part.id in TYPES for part in kinds)
