"""Rewrite expressions: comparisons, negations, ranges, `map` and `filter`, operands' order."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Gt: ast.Lt, ast.GtE: ast.LtE}
NEGATED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
# A branch with one of these tests comes second.
SECOND = (ast.LtE, ast.NotEq, ast.NotIn, ast.IsNot)
NAME = re.compile(r"id='\w+'")


def plainer(left: ast.expr, op: ast.cmpop, right: ast.expr) -> ast.expr | None:
    """Return `not x` for `len(x) == 0` and `x == []`, and `n % 2 == 0` for `n % 2 != 1`."""
    match left, op, right:
        case (
            ast.Call(ast.Name("len"), [items]),
            ast.Eq() | ast.NotEq() | ast.Gt(),
            ast.Constant(0),
        ):
            return ast.UnaryOp(ast.Not(), items) if isinstance(op, ast.Eq) else items
        case items, ast.Eq() | ast.NotEq(), ast.List([]) | ast.Constant(""):
            return ast.UnaryOp(ast.Not(), items) if isinstance(op, ast.Eq) else items
        case ast.BinOp(_, ast.Mod(), ast.Constant(2)), ast.NotEq(), ast.Constant(0 | 1 as rest):
            return ast.Compare(ast.Constant(1 - rest), [ast.Eq()], [left])
    return None


def negated(test: ast.expr) -> ast.expr:
    match test:
        case ast.UnaryOp(ast.Not(), operand):
            return operand
        case ast.Compare(left, [op], [right]) if other := NEGATED.get(type(op)):
            if turned := TURNED.get(other):
                return ast.Compare(right, [turned()], [left])
            return ast.Compare(left, [other()], [right])
        case ast.BoolOp(op, values):
            dual = ast.And() if isinstance(op, ast.Or) else ast.Or()
            return ast.BoolOp(dual, sorted(map(negated, values), key=order))
    return ast.UnaryOp(ast.Not(), test)


def comes_second(test: ast.expr) -> bool:
    match test:
        case ast.UnaryOp(ast.Not()):
            return True
        case ast.Compare(_, [op]):
            return isinstance(op, SECOND)
    return False


def range_arguments(arguments: Sequence[ast.expr]) -> list[ast.expr]:
    """Return the arguments of `range` without a start of 0 and a step of 1."""
    match list(arguments):
        case [start, stop, ast.Constant(1)]:
            return range_arguments([start, stop])
        case [ast.Constant(0), stop]:
            return [stop]
    return list(arguments)


def comprehension_of(name: str, function: ast.Lambda, items: ast.expr) -> ast.expr | None:
    if len(function.args.args) != 1:
        return None
    name_of = function.args.args[0].arg
    target = ast.Name(name_of, ast.Store())
    if name == "map":
        return ast.GeneratorExp(function.body, [ast.comprehension(target, items, [], 0)])
    part = ast.comprehension(target, items, [function.body], 0)
    return ast.GeneratorExp(ast.Name(name_of, ast.Load()), [part])


def order(node: ast.expr) -> str:
    """Sort operands without regard to the names that an author chose."""
    return NAME.sub("id=''", ast.dump(node))
