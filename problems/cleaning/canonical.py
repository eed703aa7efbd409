"""Rewrite a program so that copies with small edits become the same text.

In: Python source. Out: source in which one of several equal ways of writing is left: turned
comparisons, swapped branches, `else` after `return`, `+=`, a name for a value that the next line
uses, `enumerate` whose number nobody reads, a loop over indices, a loop that counts or collects,
`list(...)` of a generator. It is compared, never run: where `+` joins texts, or an expression has
an effect, the result may behave differently.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from artifacts.parsing import parse
from problems.cleaning.canonical_loops import collected, counted, plain
from problems.cleaning.canonical_names import inlined, needed, numbered, uses, without_wrappers
from problems.syntax import IMPORTS

MAX_SOURCE = 100_000  # characters; a longer source stays as it is
TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Gt: ast.Lt, ast.GtE: ast.LtE}
NEGATED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
# A branch with one of these tests comes second.
SECOND = (ast.LtE, ast.NotEq, ast.NotIn, ast.IsNot)
COMMUTES = (ast.Add, ast.Mult, ast.BitAnd, ast.BitOr, ast.BitXor)
BLOCKS = ("body", "orelse", "finalbody")
LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
# Builtins that take any iterable: a list in brackets is as good as a generator.
TAKERS = {"sum", "any", "all", "min", "max", "sorted", "tuple", "set", "list", "join"}
NAME = re.compile(r"id='\w+'")


def canonical(source: str) -> str:
    """Return the program's canonical source; the source itself if it is not Python."""
    if len(source) > MAX_SOURCE:
        return source
    try:
        tree = parse(source)
        tree.body = without_wrappers([node for node in tree.body if not _is_script(node)])
        for _ in range(2):  # a rewritten statement can make another rule apply
            tree = ast.fix_missing_locations(_Canonical().visit(tree))
        numbered(tree)
        return ast.unparse(tree)
    except (SyntaxError, ValueError, RecursionError):
        return source


def _is_script(node: ast.stmt) -> bool:
    """Return whether a statement of the module runs something instead of defining it."""
    if isinstance(node, ast.If):
        return any(getattr(name, "id", "") == "__name__" for name in ast.walk(node.test))
    return isinstance(node, (*IMPORTS, ast.Expr, ast.Assert))


class _Canonical(ast.NodeTransformer):
    """Rewrites expressions, then the statements of each block, innermost first."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for field in BLOCKS:
            if isinstance(block := getattr(node, field, None), list) and block:
                setattr(node, field, counted(block))
        super().generic_visit(node)
        for field in BLOCKS:
            if isinstance(block := getattr(node, field, None), list) and block:
                loop = isinstance(node, (ast.For, ast.While)) and field == "body"
                setattr(node, field, _block(block, loop) or [ast.Pass()] * (field == "body"))
        if isinstance(node, ast.FunctionDef):
            node.body = needed(node)
            node.body = inlined(node.body, uses(node))
            node.decorator_list, node.returns = [], None
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        if len(node.ops) != 1:
            return node
        (op,), left, right = node.ops, node.left, node.comparators[0]
        if turned := TURNED.get(type(op)):
            return ast.Compare(right, [turned()], [left])
        if isinstance(op, (ast.Eq, ast.NotEq)):
            left, right = sorted((left, right), key=_order)
            return ast.Compare(left, [op], [right])
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        return _negated(node.operand) if isinstance(node.op, ast.Not) else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, COMMUTES):
            node.left, node.right = sorted((node.left, node.right), key=_order)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        node.values = sorted(node.values, key=_order)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        if _comes_second(node.test):
            return ast.IfExp(_negated(node.test), node.orelse, node.body)
        return node

    def visit_Slice(self, node: ast.Slice) -> ast.Slice:
        self.generic_visit(node)
        if isinstance(node.lower, ast.Constant) and node.lower.value == 0:
            node.lower = None
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        name = getattr(node.func, "id", "") or getattr(node.func, "attr", "")
        if node.keywords or not node.args:
            return node
        first = node.args[0]
        if name == "range" and isinstance(node.func, ast.Name):
            return ast.Call(node.func, _range(node.args), [])
        if name in ("map", "filter") and isinstance(first, ast.Lambda) and len(node.args) == 2:
            return _comprehension(name, first, node.args[1]) or node
        if name in TAKERS and isinstance(first, (ast.ListComp, ast.GeneratorExp)):
            if name == "list":
                return ast.ListComp(first.elt, first.generators)
            if name == "set":
                return ast.SetComp(first.elt, first.generators)
            first = ast.GeneratorExp(first.elt, first.generators)
            return ast.Call(node.func, [first, *node.args[1:]], [])
        return node


def _block(block: Sequence[ast.stmt], loop: bool) -> list[ast.stmt]:
    """Return the statements of a block in canonical form. loop: it is the body of a loop."""
    result: list[ast.stmt] = []
    for at, node in enumerate(block):
        match node:
            case ast.Pass() | ast.Import() | ast.ImportFrom() | ast.Expr(ast.Constant()):
                continue
            case ast.AnnAssign(target, value=value):
                result += [ast.Assign([target], value)] if value else []
            case ast.AugAssign(target, op, value):
                read = ast.parse(ast.unparse(target), mode="eval").body
                left, right = (
                    sorted((read, value), key=_order) if isinstance(op, COMMUTES) else (read, value)
                )
                result.append(ast.Assign([target], ast.BinOp(left, op, right)))
            case ast.Assign([ast.Name(name)], ast.Lambda(args, body)):
                result.append(ast.FunctionDef(name, args, [ast.Return(body)], []))
            case ast.Return(ast.IfExp(test, body, orelse)):
                branches = ast.If(test, [ast.Return(body)], [ast.Return(orelse)])
                return result + _branches(branches, [], loop)
            case ast.If():
                return result + _branches(node, block[at + 1 :], loop)
            case ast.For():
                result.append(plain(node))
            case _:
                result.append(node)
                if isinstance(node, LEAVES):
                    break
    if loop and result and isinstance(result[-1], ast.Continue):
        result.pop()
    return collected(result)


def _branches(node: ast.If, rest: Sequence[ast.stmt], loop: bool) -> list[ast.stmt]:
    """Return a branch and the rest of its block: the positive test first, no needless `else`."""
    test, body, orelse = node.test, list(node.body), list(node.orelse)
    if _leaves(body):  # the rest is its `else`
        orelse, rest = [*orelse, *rest] if not _leaves(orelse) else orelse, []
    body, orelse = _block(body, False), _block(orelse, loop and not rest)
    if loop and len(body) == 1 and isinstance(body[0], ast.Continue) and not rest:
        test, body, orelse = _negated(test), orelse, []
    if orelse and _comes_second(test):
        test, body, orelse = _negated(test), orelse, body
    if not body:
        test, body, orelse = _negated(test), orelse, []
    match body, orelse:
        case [ast.Return(ast.Constant(True))], [ast.Return(ast.Constant(False))]:
            return [ast.Return(test)]
        case [ast.Return(ast.Constant(False))], [ast.Return(ast.Constant(True))]:
            return [ast.Return(_negated(test))]
    if not body:
        return _block(rest, loop)
    if _leaves(body):
        return [ast.If(test, body, []), *orelse, *_block(rest, loop)]
    return [ast.If(test, body, orelse), *_block(rest, loop)]


def _negated(test: ast.expr) -> ast.expr:
    match test:
        case ast.UnaryOp(ast.Not(), operand):
            return operand
        case ast.Compare(left, [op], [right]) if negated := NEGATED.get(type(op)):
            if turned := TURNED.get(negated):
                return ast.Compare(right, [turned()], [left])
            return ast.Compare(left, [negated()], [right])
        case ast.BoolOp(op, values):
            other = ast.And() if isinstance(op, ast.Or) else ast.Or()
            return ast.BoolOp(other, sorted(map(_negated, values), key=_order))
    return ast.UnaryOp(ast.Not(), test)


def _comes_second(test: ast.expr) -> bool:
    match test:
        case ast.UnaryOp(ast.Not()):
            return True
        case ast.Compare(_, [op]):
            return isinstance(op, SECOND)
    return False


def _leaves(block: Sequence[ast.stmt]) -> bool:
    return bool(block) and isinstance(block[-1], LEAVES)


def _range(arguments: Sequence[ast.expr]) -> list[ast.expr]:
    """Return the arguments of `range` without a start of 0 and a step of 1."""
    match list(arguments):
        case [start, stop, ast.Constant(1)]:
            return _range([start, stop])
        case [ast.Constant(0), stop]:
            return [stop]
    return list(arguments)


def _comprehension(name: str, function: ast.Lambda, items: ast.expr) -> ast.expr | None:
    if len(function.args.args) != 1:
        return None
    name_of = function.args.args[0].arg
    target = ast.Name(name_of, ast.Store())
    if name == "map":
        return ast.GeneratorExp(function.body, [ast.comprehension(target, items, [], 0)])
    part = ast.comprehension(target, items, [function.body], 0)
    return ast.GeneratorExp(ast.Name(name_of, ast.Load()), [part])


def _order(node: ast.expr) -> str:
    """Sort operands without regard to the names that an author chose."""
    return NAME.sub("id=''", ast.dump(node))
