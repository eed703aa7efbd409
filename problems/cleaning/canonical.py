"""Rewrite a program so that copies with small edits become the same text.

In: Python source. Out: source in which one of several equal ways of writing is left: turned
comparisons, swapped branches, `else` after `return`, `+=`, a name for a value that the next line
uses, `enumerate` whose number nobody reads, a loop over indices, a loop that counts, collects, adds
or searches, `list(...)` of a generator, `len(x) == 0`, `.sort()`, a `try` that only raises again.
It is compared, never run: where `+` joins texts, or an expression has an effect, the result may
behave differently.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from artifacts.parsing import parse
from problems.cleaning.canonical_expressions import (
    TURNED,
    comes_second,
    comprehension_of,
    negated,
    order,
    plainer,
    range_arguments,
)
from problems.cleaning.canonical_loops import collected, counted, plain, searched, until_break
from problems.cleaning.canonical_names import (
    applied,
    inlined,
    needed,
    numbered,
    reduced,
    uses,
    without_wrappers,
)
from problems.syntax import IMPORTS

MAX_SOURCE = 100_000  # characters; a longer source stays as it is
COMMUTES = (ast.Add, ast.Mult, ast.BitAnd, ast.BitOr, ast.BitXor)
BLOCKS = ("body", "orelse", "finalbody")
LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
# Builtins that take any iterable: a list in brackets is as good as a generator.
TAKERS = {"sum", "any", "all", "min", "max", "sorted", "tuple", "set", "list", "join"}


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
                setattr(node, field, counted([until_break(inner) for inner in block]))
        super().generic_visit(node)
        for field in BLOCKS:
            if isinstance(block := getattr(node, field, None), list) and block:
                loop = isinstance(node, (ast.For, ast.While)) and field == "body"
                setattr(node, field, _block(block, loop) or [ast.Pass()] * (field == "body"))
        if isinstance(node, ast.FunctionDef):
            node.body = needed(node)
            node.body = inlined(node.body, uses(node))
            node.body = applied(node.body, uses(node))
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
        if (short := plainer(left, op, right)) is not None:
            return short
        if turned := TURNED.get(type(op)):
            return ast.Compare(right, [turned()], [left])
        if isinstance(op, (ast.Eq, ast.NotEq)):
            left, right = sorted((left, right), key=order)
            return ast.Compare(left, [op], [right])
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        return negated(node.operand) if isinstance(node.op, ast.Not) else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, COMMUTES):
            node.left, node.right = sorted((node.left, node.right), key=order)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        node.values = sorted(node.values, key=order)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        if comes_second(node.test):
            return ast.IfExp(negated(node.test), node.orelse, node.body)
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
        if isinstance(node.func, ast.Lambda):
            return reduced(node.func, node.args) or node
        first = node.args[0]
        if name == "range" and isinstance(node.func, ast.Name):
            return ast.Call(node.func, range_arguments(node.args), [])
        if name in ("map", "filter") and isinstance(first, ast.Lambda) and len(node.args) == 2:
            return comprehension_of(name, first, node.args[1]) or node
        if name in TAKERS and isinstance(first, (ast.ListComp, ast.GeneratorExp)):
            if name == "list":
                return ast.ListComp(first.elt, first.generators)
            if name == "set":
                return ast.SetComp(first.elt, first.generators)
            first = ast.GeneratorExp(first.elt, first.generators)
            return ast.Call(node.func, [first, *node.args[1:]], [])
        match name, first:
            case (
                "sorted" | "set" | "sum" | "list" | "tuple",
                ast.Call(ast.Name("list" | "tuple"), [items], []),
            ):
                return ast.Call(node.func, [items, *node.args[1:]], [])
        return node


def _block(block: Sequence[ast.stmt], loop: bool) -> list[ast.stmt]:
    """Return the statements of a block in canonical form. loop: it is the body of a loop."""
    result: list[ast.stmt] = []
    for at, node in enumerate(block := _returned(block)):
        match node:
            case ast.Pass() | ast.Import() | ast.ImportFrom() | ast.Expr(ast.Constant()):
                continue
            case ast.AnnAssign(target, value=value):
                result += [ast.Assign([target], value)] if value else []
            case ast.AugAssign(target, op, value):
                read = ast.parse(ast.unparse(target), mode="eval").body
                left, right = (
                    sorted((read, value), key=order) if isinstance(op, COMMUTES) else (read, value)
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
            case ast.Try(body, handlers, [], []) if all(map(_passes, handlers)):
                result += _block(body, False)
            case ast.Assign([ast.Tuple(targets)], ast.Tuple(values)) if len(targets) == len(
                values
            ) and not _names(targets) & _names(values):
                result += [
                    ast.Assign([one], value) for one, value in zip(targets, values, strict=True)
                ]
            case ast.Expr(ast.Call(ast.Attribute(ast.Name(name), "sort"), [], keywords)) if (
                result and (items := _sortable(result[-1], name))
            ):
                value = ast.Call(ast.Name("sorted", ast.Load()), [items], keywords)
                result[-1] = ast.Assign([ast.Name(name, ast.Store())], value)
            case _:
                result.append(node)
                if isinstance(node, LEAVES):
                    break
    if loop and result and isinstance(result[-1], ast.Continue):
        result.pop()
    return searched(collected(result))


def _passes(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler only raises again."""
    return len(handler.body) == 1 and isinstance(handler.body[0], ast.Raise)


def _names(nodes: Sequence[ast.expr]) -> set[str]:
    return {one.id for node in nodes for one in ast.walk(node) if isinstance(one, ast.Name)}


def _sortable(before: ast.stmt, name: str) -> ast.expr | None:
    """Return the items of a new list that a statement binds to the name."""
    match before:
        case ast.Assign([ast.Name(bound)], ast.Call(ast.Name("list"), [items], [])):
            return items if bound == name else None
        case ast.Assign([ast.Name(bound)], ast.ListComp(element, generators)) if bound == name:
            return ast.GeneratorExp(element, generators)
    return None


def _returned(block: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    """Return at once what both branches before a `return` bind to the returned name."""
    match block:
        case [
            *first,
            ast.If(test, [*body, ast.Assign([ast.Name(one)], value)], [*orelse, last]),
            ast.Return(ast.Name(name)) as leave,
        ] if one == name:
            other = _returned([*orelse, last, leave])
            match other:
                case [*orelse, ast.Assign([ast.Name(two)], otherwise), _] if two == name:
                    other = [*orelse, ast.Return(otherwise)]
            if other[-1] is not leave:
                return [*first, ast.If(test, [*body, ast.Return(value)], list(other))]
    return block


def _branches(node: ast.If, rest: Sequence[ast.stmt], loop: bool) -> list[ast.stmt]:
    """Return a branch and the rest of its block: the positive test first, no needless `else`."""
    test, body, orelse = node.test, list(node.body), list(node.orelse)
    if _leaves(body):  # the rest is its `else`
        orelse, rest = [*orelse, *rest] if not _leaves(orelse) else orelse, []
    body, orelse = _block(body, False), _block(orelse, loop and not rest)
    if loop and len(body) == 1 and isinstance(body[0], ast.Continue) and not rest:
        test, body, orelse = negated(test), orelse, []
    if orelse and comes_second(test):
        test, body, orelse = negated(test), orelse, body
    if not body:
        test, body, orelse = negated(test), orelse, []
    match body, orelse:
        case [ast.Return(ast.Constant(True))], [ast.Return(ast.Constant(False))]:
            return [ast.Return(test)]
        case [ast.Return(ast.Constant(False))], [ast.Return(ast.Constant(True))]:
            return [ast.Return(negated(test))]
    if not body:
        return _block(rest, loop)
    if _leaves(body):
        return [ast.If(test, body, []), *orelse, *_block(rest, loop)]
    return [ast.If(test, body, orelse), *_block(rest, loop)]


def _leaves(block: Sequence[ast.stmt]) -> bool:
    return bool(block) and isinstance(block[-1], LEAVES)
